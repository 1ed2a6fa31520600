/** `oncebox work`: runs the box of the config until it is told to stop. */
import { INBOX, type InboxTarget } from '../../brokers/handover.js'
import type { ConfiguredBox } from '../../config.js'
import { partsOf } from '../../parts.js'
import { command } from '../command.js'
import { boxOf, requireConfig, type LoadedConfig } from '../config.js'
import { EXIT, failed, misused, type Exit, type ExitCode } from '../exit.js'
import { faultOf } from '../fault.js'
import type { Io } from '../io.js'
import { duration, text } from '../option.js'
import type { Output } from '../output/output.js'
import { paint } from '../output/text.js'
import { masked } from '../secrets.js'

export const work = command({
  noun: 'work',
  summary: 'Run the box of the config: its consumers, sources and sinks.',
  details: [
    'It needs a schema that is up to date: run `oncebox migrate up` before. SIGTERM or Ctrl-C stops it: it takes nothing more, finishes what runs, gives the rest back, and exits with 0. A second one ends it at once; messages that were running are run again by another process, when their lease is over.',
    'With --consumers, what arrives in this process for the others is stored for them: run them in other processes.',
  ],
  example: 'oncebox work --consumers send-mail,billing',
  options: {
    config: text('The config file (default: oncebox.config.ts, .mts, .js, .mjs or .cjs here or above).', 'path'),
    consumers: text('Run these consumers only, with commas between their names.', 'names'),
    stopTimeout: duration('How long what runs may take when it is to stop.', 30_000, '30s'),
  },
  endless: true,
  exits: [EXIT.unconnected],
  async run({ options, io, out }) {
    const loaded = await requireConfig(io.cwd, options.config)
    const consumers = namesIn(options.consumers)
    let box: ConfiguredBox | undefined
    try {
      box = await boxOf(loaded)
      return await runUntilStopped({ box, loaded, consumers, stopTimeoutMs: options.stopTimeout, out, signal: io.signal }) // prettier-ignore
    } catch (error) {
      throw await told(error, { box, config: options.config, io })
    }
  },
})

interface Tried {
  readonly box: ConfiguredBox | undefined
  readonly config: string | undefined
  readonly io: Io
}

/** With what leads `oncebox migrate up` to the schema of this box. */
async function told(error: unknown, { box, config, io }: Tried): Promise<Exit> {
  const { flagsOf } = await import('../connect/place.js')
  const { schemaOf } = await import('../connect/schema.js')
  const { hintAtUrl } = await import('../connect/unsaid.js')
  const { explain } = await import('../explain.js')
  const target = (box as { readonly [INBOX]?: InboxTarget } | undefined)?.[INBOX]
  const schema = target && schemaOf(target)
  return hintAtUrl(explain(error, flagsOf({ ...(schema !== 'oncebox' && { schema }), config })), io)
}

interface Run {
  readonly box: ConfiguredBox
  readonly loaded: LoadedConfig
  /** Undefined: all. */
  readonly consumers: readonly string[] | undefined
  readonly stopTimeoutMs: number
  readonly out: Output
  readonly signal: AbortSignal
}

async function runUntilStopped(run: Run): Promise<ExitCode> {
  const { box, loaded, consumers, stopTimeoutMs, out, signal } = run
  const end = awaitEnd(signal)
  try {
    await Promise.race([box.start({ consumers }), end.reached])
    if (!end.ended) for (const line of whatRuns(box, consumers)) out.note(paint('dim', 'runs '), line)
    if (!end.ended) out.note(paint('green', 'started'), '; Ctrl-C or SIGTERM stops it')
    const reason = await end.reached
    if (reason !== undefined) {
      const { where, what } = faultOf(reason.error, loaded.file)
      out.note(paint('red', 'oncebox:'), ` ${reason.kind} at ${where}: ${masked(what)}`)
    }
    out.note('stopping: what runs is finished, for at most ', `${Math.round(stopTimeoutMs / 1_000)} s`)
    await box.stop({ timeoutMs: stopTimeoutMs })
    out.note('stopped')
    return reason === undefined ? EXIT.ok : EXIT.failed
  } finally {
    end.forget()
  }
}

interface Fault {
  readonly kind: 'unhandled rejection' | 'uncaught exception'
  readonly error: unknown
}

interface End {
  readonly ended: boolean
  /** With what ended it; undefined for a signal. */
  readonly reached: Promise<Fault | undefined>
  forget(): void
}

/** A signal, or an error that nobody handles: after that nothing is known of the state of the user's code. */
function awaitEnd(signal: AbortSignal): End {
  let ended = false
  let reach: (fault: Fault | undefined) => void = () => undefined
  const reached = new Promise<Fault | undefined>((resolve) => {
    reach = (fault) => {
      ended = true
      resolve(fault)
    }
  })
  const rejected = (error: unknown): void => reach({ kind: 'unhandled rejection', error })
  const uncaught = (error: unknown): void => reach({ kind: 'uncaught exception', error })
  const aborted = (): void => reach(undefined)
  process.on('unhandledRejection', rejected).on('uncaughtException', uncaught)
  signal.addEventListener('abort', aborted)
  if (signal.aborted) aborted()
  return {
    get ended() {
      return ended
    },
    reached,
    forget() {
      process.off('unhandledRejection', rejected).off('uncaughtException', uncaught)
      signal.removeEventListener('abort', aborted)
    },
  }
}

function namesIn(given: string | undefined): readonly string[] | undefined {
  if (given === undefined) return undefined
  const names = given.split(',').map((name) => name.trim())
  if (names.some((name) => name === '')) throw emptyName()
  return names
}

function emptyName(): Exit {
  return misused('--consumers has an empty name', 'for example: --consumers send-mail,billing')
}

/** A line each. */
export function whatRuns(box: object, only: readonly string[] | undefined): string[] {
  const parts = partsOf(box)
  if (parts === undefined) throw failed('box of the config is not what createBox() of this version answers')
  const consumers = [...parts.consumers.values()].map(({ consumer: { name, types, options } }) =>
    only === undefined || only.includes(name)
      ? `consumer ${name} (${types.join(', ')}), ${options.concurrency} at a time`
      : `no consumer ${name}: what arrives is stored for it`,
  )
  const sources = parts.runtime.origins.map(({ name }) => `source ${name}`)
  const sinks = parts.runtime.outbox.sinks.map(
    ({ name, types }) => `sink ${name}${types ? ` (${types.join(', ')})` : ''}`,
  )
  const all = [...consumers, ...sources, ...sinks]
  return all.length > 0 ? all : ['nothing: the box of the config has no consumer, source or sink']
}

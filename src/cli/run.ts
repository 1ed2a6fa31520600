/** Runs what was typed. Everything of the outside is handed in, so that tests run it without a process. */
import { sleep } from '../backoff.js'
import { hintAt } from '../nearest.js'
import type { Command, Context } from './command.js'
import { loadConfig, type Config } from './config.js'
import type { Connection } from './connect/connect.js'
import type { ConnectionOptions } from './connect/place.js'
import { EXIT, Exit, misused, type ExitCode } from './exit.js'
import { commandHelp, overview } from './help.js'
import { isOutputClosed, type Io } from './io.js'
import { createLogger } from './logger.js'
import { createOutput, type Output } from './output/output.js'
import { paint } from './output/text.js'
import { asksForHelp, parse } from './parse.js'
import { allCommands, COMMANDS } from './registry.js'
import { version } from './version.js'

/** A command that was interrupted has so long to stop by itself, and to say how far it got. */
const GRACE_MS = 3_000
/** A client waits for the answers to its statements before it closes, and one that was interrupted may never come. */
const CLOSE_MS = 1_000

export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const out = createOutput(io, { json: false, raw: false })
  try {
    return await runCommand(argv, io, out)
  } catch (error) {
    // What it takes to explain an error is loaded when there is one.
    const { explain } = await import('./explain.js')
    const { code, message, advice } = explain(error)
    if (code === EXIT.interrupted && isOutputClosed(io.signal)) return EXIT.ok
    out.note(paint(code === EXIT.interrupted ? 'yellow' : 'red', 'oncebox:'), ' ', message)
    if (advice !== undefined) out.note('  ', advice)
    return code
  }
}

async function runCommand(argv: readonly string[], io: Io, out: Output): Promise<ExitCode> {
  const [first] = argv
  if (first === '--version' || first === 'version') {
    out.line(await version())
    return EXIT.ok
  }
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') return help(argv.slice(1), out)
  const { names, rest } = find(argv)
  if (names.length > 1 || asksForHelp(rest)) {
    if (!asksForHelp(argv)) throw incomplete(first, names)
    return help(names, out, names.length > 1)
  }
  const command = await COMMANDS[names[0]!]!()
  const { options, args } = parse(command, rest)
  return runWith(command, { options, args }, io)
}

/** The command that the first words name; several where a verb is missing. */
function find(argv: readonly string[]): { names: string[]; rest: readonly string[] } {
  const known = Object.keys(COMMANDS)
  const [noun = '', verb] = argv
  if (noun.startsWith('-')) {
    throw misused('say the command first', 'oncebox --help lists them; options come behind the command')
  }
  if (verb !== undefined && known.includes(`${noun} ${verb}`))
    return { names: [`${noun} ${verb}`], rest: argv.slice(2) }
  if (known.includes(noun)) return { names: [noun], rest: argv.slice(1) }
  const verbs = known.filter((name) => name.startsWith(`${noun} `))
  if (verbs.length === 0) throw unknown(noun, [...new Set(known.map((name) => name.split(' ')[0]!))], 'oncebox --help')
  if (verb === undefined || verb.startsWith('-'))
    return { names: verbs.length > 1 ? verbs : [...verbs, ''], rest: argv }
  throw unknown(`${noun} ${verb}`, verbs, `oncebox ${noun} --help`)
}

function unknown(given: string, known: readonly string[], lists: string): Exit {
  return misused(`there is no command "${given}"`, hintAt(given, known, `${lists} lists them`))
}

function incomplete(noun: string, names: readonly string[]): Exit {
  const verbs = names.filter(Boolean).map((name) => `oncebox ${name}`)
  return misused(`oncebox ${noun} needs a verb`, verbs.join(', '))
}

async function help(words: readonly string[], out: Output, several = false): Promise<ExitCode> {
  const width = Math.min(out.width ?? 80, 100)
  const all = await allCommands()
  const chosen = several
    ? all.filter(({ name }) => words.includes(name))
    : all.filter(({ name }) => words.length > 0 && name === words.join(' '))
  const lines = chosen.length === 1 ? commandHelp(chosen[0]!, width) : overview(chosen.length > 1 ? chosen : all, width)
  for (const line of lines) out.line(line)
  return EXIT.ok
}

async function runWith(
  command: Command,
  { options, args }: Pick<Context, 'options' | 'args'>,
  io: Io,
): Promise<ExitCode> {
  const { json = false, raw = false } = options as { json?: boolean; raw?: boolean }
  const out = createOutput(io, { json, raw })
  const opened: Promise<Connection>[] = []
  let config: Promise<Config | undefined> | undefined
  const loaded = (): Promise<Config | undefined> =>
    (config ??= loadConfig(io.cwd, (options as Partial<ConnectionOptions>).config))
  const context: Context = {
    ...{ options, args, io, out, signal: io.signal, config: loaded, commands: allCommands },
    async connect(needs) {
      const { connect } = await import('./connect/connect.js')
      const given = options as unknown as ConnectionOptions
      const note = (text: string): void => out.note(paint('dim', text))
      const connection = connect({ io, options: given, logger: createLogger(out), note, config: loaded }, needs)
      opened.push(connection)
      return connection
    },
  }
  try {
    if (command.endless) return (await command.run(context)) ?? EXIT.ok
    const code = (await untilInterrupted(command.run(context), io.signal)) ?? EXIT.ok
    if (isOutputClosed(io.signal)) return code === EXIT.interrupted ? EXIT.ok : code
    return io.signal.aborted ? EXIT.interrupted : code
  } catch (error) {
    const { deniedOf } = await import('./rights.js')
    throw (await deniedOf(error, command, () => schemaIn(opened, options, loaded))) ?? error
  } finally {
    for (const connection of await Promise.allSettled(opened)) {
      if (connection.status === 'fulfilled')
        await sleep(
          CLOSE_MS,
          connection.value.close().catch(() => undefined),
        )
    }
  }
}

/** The schema that a command was about; of one that came to no connection, what it would have been. */
async function schemaIn(
  opened: readonly Promise<Connection>[],
  options: Partial<ConnectionOptions>,
  config: () => Promise<Config | undefined>,
): Promise<string> {
  const found = await opened[0]?.catch(() => undefined)
  return found?.schema ?? options.schema ?? (await config().catch(() => undefined))?.schema ?? 'oncebox'
}

/** A statement that takes its time must not keep somebody who pressed Ctrl-C. */
async function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  let wait: (() => void) | undefined
  const late = new Promise<never>((_, reject) => {
    const giveUp = (): void => reject(new Exit(EXIT.interrupted, 'interrupted'))
    // Where nobody reads on, nobody waits either: it has the time to leave nothing half done.
    wait = () => void (isOutputClosed(signal) || (timer = setTimeout(giveUp, GRACE_MS)))
    if (signal.aborted) wait()
    else signal.addEventListener('abort', wait, { once: true })
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    if (wait) signal.removeEventListener('abort', wait)
  }
}

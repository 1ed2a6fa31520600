/**
 * Retain: the last step. Deletes what was handled or discarded longer ago than its consumer retains it, in small
 * batches that wait for nobody. Dead, quarantined and pending messages stay until a person or a worker settles them, but for
 * what its source allows to be forgotten in quarantine.
 *
 * Any number of processes may do it at once: each batch is judged again, under its locks, by the statement that deletes.
 */
import { DAY_MS, DEFAULT_RETAIN_MS } from '../figures.js'
import type { Entry } from '../hooks.js'
import { beginTurn, type OwnTurn, type Turn } from '../lifecycle.js'
import type { MessageMap } from '../message.js'
import { pruneOutbox } from '../outbox/retain.js'
import { sqlState } from '../postgres/errors.js'
import {
  CONSUMERS, PRUNABLE, PRUNABLE_QUARANTINE, PRUNE, PRUNE_LANES, PRUNE_QUARANTINE,
} from '../postgres/sql/retain.js' // prettier-ignore
import { PRUNE_BULK } from '../postgres/sql/bulk-work.js'
import { PRUNE_MINUTES } from '../postgres/sql/minutes.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import { watch, type Runtime } from '../runtime.js'
import type { Trouble } from '../worker/trouble.js'
import { sleep } from '../backoff.js'
import type { ConsumerDeclaration } from './consumer.js'
import { toEntry } from './entry.js'
import { fillFingerprints } from './fingerprints.js'

const BATCH = 1_000
/** An archive gets the bodies, which may be large. */
const ARCHIVE_BATCH = 200
/** A transaction of a handler may hold the watermark of one consumer, and the others do not wait for it. */
const WAIT = '1s'
/** What the charts of the dashboard show. */
const MINUTES_MS = 7 * DAY_MS
const MINUTES_AT_ONCE = 5_000

/** What a janitor remembers from pass to pass. */
export interface Memory {
  /** By consumer, how far the last pass came: what is older was deleted, or had to stay. */
  readonly low: Map<string, readonly [received: string, source: string, id: string]>
  /** Rows of the quarantine that may go are rare and have no index of their own: they are looked for now and then. */
  quarantine: boolean
  readonly stopping: boolean
  readonly trouble: Trouble
}

/** What a pass has done so far, whether it comes to its end or not. */
export interface Pruned {
  /** The messages that it has deleted. */
  count: number
  /** Consumers of which something is left, because somebody held their watermark. */
  readonly held: string[]
  /** What the archive has thrown. */
  refused?: { readonly error: unknown }
}

/** Deletes what may go, and notes in `done` what it does. */
export async function prune(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  memory: Memory,
  done: Pruned = { count: 0, held: [] },
): Promise<void> {
  try {
    const retain = await retainOf(runtime, consumers)
    for (const [consumer, retainMs] of retain) {
      await pruneMessages(runtime, { name: consumer, retainMs }, memory, done)
      await pruneLanes(runtime, consumer, memory)
      await fillFingerprints(runtime, consumer, () => memory.stopping)
    }
    if (memory.quarantine) await pruneQuarantine(runtime, retain, memory, done)
    memory.trouble.worked()
  } catch (error) {
    if (!(error instanceof ArchiveFailed)) throw error
    // No message is deleted until it works.
    done.refused = { error: error.cause }
    memory.trouble.failed(error.cause)
  }
  await pruneOutbox(runtime, memory)
  await pruneMinutes(runtime, memory)
  await runtime.db.run(PRUNE_BULK, { keepMs: DAY_MS })
}

function watchRetention(runtime: Runtime): Trouble {
  return watch(runtime, { name: 'retention', where: { part: 'retention' }, of: 'the database' })
}

/** Of a janitor that goes on for so long. */
export function createMemory(runtime: Runtime, { goesOn }: Turn, trouble = watchRetention(runtime)): Memory {
  return {
    low: new Map(),
    quarantine: true,
    trouble,
    get stopping() {
      return !goesOn()
    },
  }
}

class ArchiveFailed extends Error {}

/**
 * How long a consumer's messages are retained: as was registered last, and no less than this process declares. A process that an
 * older release left running must not forget what the next one promises to remember: keys of requests carry no time by which
 * a copy could be refused.
 */
export function retainedMs(declared: number | undefined, registered: number | null): number {
  if (declared === undefined) return registered ?? DEFAULT_RETAIN_MS
  return Math.max(declared, registered ?? 0)
}

/** How long each consumer there is retains. */
async function retainOf({ db }: Runtime, consumers: readonly ConsumerDeclaration[]): Promise<Map<string, number>> {
  const declared = new Map(consumers.map(({ name, options }) => [name, options.retainMs]))
  const retain = new Map(declared)
  for (const { name, retain_ms } of await db.run(CONSUMERS, null)) {
    retain.set(name, retainedMs(declared.get(name), retain_ms === null ? null : Number(retain_ms)))
  }
  return retain
}

async function pruneMessages(
  runtime: Runtime,
  { name: consumer, retainMs }: { readonly name: string; readonly retainMs: number },
  memory: Memory,
  done: Pruned,
): Promise<void> {
  const { db, hooks, metrics } = runtime
  const limit = hooks.archive ? ARCHIVE_BATCH : BATCH
  while (!memory.stopping) {
    const low = memory.low.get(consumer)
    const rows = await db.run(PRUNABLE, { consumer, retainMs, limit, lean: !hooks.archive, low })
    const last = rows.at(-1)
    if (!last) break
    const fit = rows.filter((row) => row.fits === 'true')
    if (fit.length > 0) {
      await archive(runtime, fit)
      const keys = fit.map(({ source, id }) => [source, id] as const)
      const [answer] = await db.run(PRUNE, { consumer, retainMs, keys, wait: WAIT }).catch(ifHeld)
      // Somebody holds its watermark: the next pass comes back to these.
      if (!answer) {
        done.held.push(consumer)
        break
      }
      done.count += Number(answer.gone)
      metrics.deleted('messages', Number(answer.gone))
    }
    memory.low.set(consumer, [last.at!, last.source, last.id])
    if (Number(last.ord) < limit) break
  }
}

function ifHeld(error: unknown): [] {
  if (sqlState(error) !== '55P03') throw error
  return []
}

async function pruneLanes({ db }: Runtime, consumer: string, memory: Memory): Promise<void> {
  let after: string | null = ''
  while (after !== null && !memory.stopping) {
    const [row]: readonly { examined: string; last: string | null }[] = await db.run(PRUNE_LANES, {
      consumer,
      after,
      limit: BATCH,
    })
    after = Number(row!.examined) < BATCH ? null : row!.last
  }
}

async function pruneQuarantine(
  runtime: Runtime,
  retain: ReadonlyMap<string, number>,
  memory: Memory,
  done: Pruned,
): Promise<void> {
  const horizons = {
    retainMs: Object.fromEntries(retain),
    defaultMs: DEFAULT_RETAIN_MS,
    leastMs: Math.min(DEFAULT_RETAIN_MS, ...retain.values(), ...expiries(runtime)),
  }
  let after: string | undefined
  while (!memory.stopping) {
    const rows = await runtime.db.run(PRUNABLE_QUARANTINE, { ...horizons, limit: ARCHIVE_BATCH, after })
    const last = rows.at(-1)
    if (!last) break
    const fit = rows.filter((row) => row.fits === 'true')
    if (fit.length > 0) {
      await archive(runtime, fit)
      const gone = await runtime.db.run(PRUNE_QUARANTINE, fit.map(({ n }) => n)) // prettier-ignore
      done.count += gone.length
      runtime.metrics.deleted('quarantined', gone.length)
    }
    if (Number(last.ord) < ARCHIVE_BATCH || last.young === 'true') break
    after = last.n
  }
}

async function pruneMinutes({ db }: Runtime, memory: Memory): Promise<void> {
  for (let gone = MINUTES_AT_ONCE; gone === MINUTES_AT_ONCE && !memory.stopping;) {
    const [row] = await db.run(PRUNE_MINUTES, { keepMs: MINUTES_MS, limit: MINUTES_AT_ONCE })
    gone = Number(row!.gone)
  }
}

/** How long sources let what they brought stay in quarantine. */
function expiries({ origins }: Runtime): number[] {
  return origins.flatMap(({ quota }) => quota?.notAllowedMs ?? [])
}

async function archive({ hooks }: Runtime, rows: readonly FoundRow[]): Promise<void> {
  if (!hooks.archive) return
  const entries: Entry<MessageMap>[] = rows.map((row) => toEntry(row))
  try {
    await hooks.archive(entries)
  } catch (error) {
    throw new ArchiveFailed('the archive failed', { cause: error })
  }
}

export interface Janitor {
  start(): void
  /** Resolves when the batch that runs, if any, is through, and after `timeoutMs` at the latest. */
  stop(timeoutMs: number): Promise<void>
}

const PASS_MS = 60_000
/** So often a pass begins at the oldest message again: one that had to stay may be free to go by now. */
const FRESH_LOOK_PASSES = 30

/**
 * Prunes about once a minute, and never at the same moment as its neighbours. Each start is a turn with a memory of its own: a pass
 * that outlasts its stop ends at its next step, whatever was started since.
 */
export function createJanitor(runtime: Runtime, consumers: () => readonly ConsumerDeclaration[]): Janitor {
  const trouble = watchRetention(runtime)
  let turn: OwnTurn | undefined
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  const pass = async (memory: Memory, isFresh: boolean): Promise<void> => {
    memory.quarantine = isFresh
    if (isFresh) memory.low.clear()
    try {
      await prune(runtime, consumers(), memory)
      runtime.metrics.retentionPassed('ok')
    } catch (error) {
      runtime.metrics.retentionPassed('failed')
      if (!memory.stopping) trouble.failed(error)
    }
  }
  const schedule = (memory: Memory, passes: number): void => {
    timer = setTimeout(
      () => {
        running = pass(memory, passes % FRESH_LOOK_PASSES === 0).then(() => {
          if (!memory.stopping) schedule(memory, passes + 1)
        })
      },
      PASS_MS * (0.5 + Math.random()),
    )
    timer.unref()
  }
  return {
    start() {
      if (turn) return
      const memory = createMemory(runtime, (turn = beginTurn()), trouble)
      runtime.traces.background(() => schedule(memory, 0))
    },
    async stop(timeoutMs) {
      turn?.end()
      turn = undefined
      clearTimeout(timer)
      await sleep(timeoutMs, running)
    },
  }
}

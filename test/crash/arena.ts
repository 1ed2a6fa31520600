/**
 * Where the crash tests take place: a database with a table of effects, and processes that run consumers on it.
 *
 * Effects have no unique constraint, so that a double shows; `n` is the order in which handlers wrote them.
 */
import pg from 'pg'
import { createBox, type Box, type Incoming } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase } from '../support/postgres.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'

const WORKER = new URL('./children/worker.mjs', import.meta.url)
const SCHEMA = 'oncebox'

/** A consumer as children/worker.mjs declares it. */
export interface ConsumerSpec {
  name: string
  /** Default: one, of the same name. */
  types?: string[]
  /** One call for many messages. */
  batched?: boolean
  options?: Record<string, unknown>
}

export interface WorkerSpec {
  consumers: ConsumerSpec[]
  /** The name of its sessions in pg_stat_activity. */
  name?: string
  /** Default: the arena's own; a proxy's, to go through it. */
  url?: string
  schema?: string
  /** Options of the pool. */
  pool?: Record<string, unknown>
  /** Default true; false for a process that only delivers. */
  start?: boolean
  /** Report each handler call as an event `run`. */
  report?: boolean
  /** Fields of messages' data that it passes over: what makes the others wait. */
  ignores?: string[]
  /** How large its heap may get, in MiB. */
  heapMb?: number
  /** The client that its handlers write with, of ../clients/subjects, and where its packages are. Default: pg. */
  client?: { name: string; from?: string | undefined }
}

export interface Effect {
  n: number
  consumer: string
  key: string | null
  id: string
  seq: number | null
  attempt: number
  pid: number
  /** In milliseconds, by the database's clock. */
  at: number
}

/** A message that is not settled. */
export interface Work {
  consumer: string
  id: string
  lane: string | null
  attempts: number
  parked: string | null
  claimed: boolean
  code: string | null
}

/** What a process answered to one call of a front door. */
export type Delivered =
  { id: string; status: string; ack: boolean; reason?: string }[] | { rejected: string; code?: string }

export interface Arena {
  readonly url: string
  /** Past every proxy, for assertions. */
  readonly pool: pg.Pool
  /** A box of the test process; it runs nothing. */
  readonly box: Box<Record<never, never>, pg.PoolClient, unknown>
  /** Makes consumers known to receivers before any process runs them. */
  register(consumers: ConsumerSpec[]): Promise<void>
  /** Starts a process with these consumers and waits until it runs. */
  worker(spec: WorkerSpec): Promise<Child>
  /** Kills every process that is left. */
  endWorkers(): Promise<void>
  /** Ends them too, and forgets every message: the next test, or another try of this one, begins with nothing. */
  clear(): Promise<void>
  effects(consumer?: string): Promise<Effect[]>
  work(consumer?: string): Promise<Work[]>
  /** How many messages are neither handled nor parked nor behind a parked one. */
  pending(consumer?: string): Promise<number>
  drained(options?: { consumer?: string; timeoutMs?: number }): Promise<void>
  /** Ids with a recorded failure, one entry for each. */
  failures(): Promise<string[]>
  /** Sessions of a worker that are in a transaction or run a statement. */
  busySessions(name: string): Promise<number>
  close(): Promise<void>
}

export async function openArena(name: string, serverUrl?: string): Promise<Arena> {
  const database = serverUrl === undefined ? await scratchDatabase(name) : undefined
  const url = serverUrl ?? database!.url
  const pool = new pg.Pool({ connectionString: url, max: 6, application_name: 'arena' })
  pool.on('error', () => {})
  await pool.query(`create table effect (n bigserial primary key, consumer text, key text, id text, seq int, attempt int,
    pid int, at timestamptz default clock_timestamp())`)
  const boxOf = () => createBox({ db: fromPg(pool), schema: SCHEMA, logger: SILENT })
  const box = boxOf()
  await box.migrate()
  const children: Child[] = []

  const endWorkers = async (): Promise<void> => {
    await Promise.all(children.splice(0).map((child) => child.kill('SIGKILL')))
  }
  const rows = async <T extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<T[]> =>
    (await pool.query<T>(text, values)).rows
  const count = async (text: string, values: unknown[]): Promise<number> =>
    (await rows<{ n: number }>(`select count(*)::int n from ${text}`, values))[0]!.n

  const pending = (consumer?: string): Promise<number> =>
    count(
      `${SCHEMA}.work w left join ${SCHEMA}.lane l on l.consumer = w.consumer and l.key = w.lane
       where w.parked is null and l.blocked is not true and ($1::text is null or w.consumer = $1)`,
      [consumer ?? null],
    )

  return {
    url,
    pool,
    box: box as unknown as Arena['box'],
    pending,
    async register(consumers) {
      const own = boxOf()
      for (const { name: consumer, types = [consumer], options } of consumers) {
        own.consumer(consumer, Object.fromEntries(types.map((type) => [type, () => {}])), options)
      }
      await own.migrate()
    },
    async worker(spec) {
      const settings = { url, schema: SCHEMA, name: 'worker', ...spec }
      const execArgv = spec.heapMb === undefined ? [] : [`--max-old-space-size=${spec.heapMb}`]
      const child = spawnChild(WORKER, { execArgv, env: { ARENA: JSON.stringify(settings) } })
      children.push(child)
      await child.next('started', { timeoutMs: 60_000 })
      return child
    },
    endWorkers,
    async clear() {
      await endWorkers()
      // The server may not have noticed yet that they are gone, and their sessions hold locks until it does.
      await pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name <> 'arena' and pid <> pg_backend_pid()`)
      const tables = ['message', 'work', 'lane', 'quarantine', 'attempt', 'effect', 'outbox', 'delivery']
      await pool.query(`truncate effect, ${tables.map((table) => `${SCHEMA}.${table}`).join(', ')}`)
    },
    effects: (consumer) =>
      rows<Effect>(
        `select n::int, consumer, key, id, seq, attempt, pid, (extract(epoch from at) * 1000)::float8 at from effect
         where $1::text is null or consumer = $1 order by effect.n`,
        [consumer ?? null],
      ),
    work: (consumer) =>
      rows<Work>(
        `select w.consumer, w.id, w.lane, w.attempts, w.parked, coalesce(l.token, w.token) is not null claimed,
           w.error::jsonb->>'code' code
         from ${SCHEMA}.work w left join ${SCHEMA}.lane l on l.consumer = w.consumer and l.key = w.lane
         where $1::text is null or w.consumer = $1 order by w.seq`,
        [consumer ?? null],
      ),
    async drained({ consumer, timeoutMs = 60_000 } = {}) {
      const what = `${consumer ?? 'every consumer'} to have nothing left`
      await waitUntil(async () => (await pending(consumer)) === 0, { timeoutMs, everyMs: 50, what })
    },
    failures: async () =>
      (await rows<{ id: string }>(`select id from ${SCHEMA}.attempt order by id`, [])).map(({ id }) => id),
    busySessions: (session) =>
      count(
        `pg_stat_activity where datname = current_database() and application_name = $1 and state is distinct from 'idle'`,
        [session],
      ),
    async close() {
      await Promise.all(children.map((child) => child.kill('SIGKILL')))
      await pool.end()
      await database?.close()
    },
  }
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** Hands calls to a process and waits for its answers. Rejects if it dies before. */
export async function deliverFrom(
  child: Child,
  door: 'receive' | 'handle',
  calls: Incoming[][],
  options: { timeoutMs?: number } = {},
): Promise<Delivered[]> {
  const n = ++deliveries
  child.send('deliver', { door, calls, n })
  return (await child.next(`delivered:${n}`, { timeoutMs: 60_000, ...options }))['answers'] as Delivered[]
}
let deliveries = 0

/** Starts a worker again each time it dies, until its consumer has nothing left to do. Answers how often it died. */
export async function supervise(arena: Arena, spec: WorkerSpec): Promise<number> {
  let deaths = 0
  let done = false
  const run = async (): Promise<void> => {
    while (!done) {
      const worker: Child = await arena.worker(spec).catch(() => undefined as never)
      if (worker) await worker.exited
      deaths++
    }
  }
  const running = run()
  await arena
    .drained({ consumer: spec.consumers[0]!.name, timeoutMs: 120_000 })
    .finally(() => (done = true))
    .finally(() => arena.endWorkers())
  await running
  return deaths - 1
}

/** Ids with more than one effect, and ids without any. */
export function misses(effects: readonly Effect[], ids: Iterable<string>): { doubled: string[]; lost: string[] } {
  const counts = new Map<string, number>()
  for (const { id } of effects) counts.set(id, (counts.get(id) ?? 0) + 1)
  return {
    doubled: [...counts].filter(([, times]) => times > 1).map(([id]) => id),
    lost: [...ids].filter((id) => !counts.has(id)),
  }
}

/** Effects that came after one with a larger `seq` of the same key. */
export function inversions(effects: readonly Effect[]): string[] {
  const last = new Map<string, number>()
  const found: string[] = []
  for (const { key, seq, id } of effects) {
    const before = last.get(key!) ?? -1
    if (seq! <= before) found.push(`${key}: ${id} after ${before}`)
    last.set(key!, seq!)
  }
  return found
}

/** Handler calls that a process has reported, by id. */
export function runsOf(...workers: Child[]): Map<string, number> {
  const runs = new Map<string, number>()
  for (const { events } of workers) {
    for (const { event, id } of events) if (event === 'run') runs.set(id as string, (runs.get(id as string) ?? 0) + 1)
  }
  return runs
}

/** Fails if one of them has ended, and says how. */
export async function stillAlive(...workers: Child[]): Promise<void> {
  for (const { exited, output } of workers) {
    const end = await Promise.race([exited, Promise.resolve(undefined)])
    if (end) throw new Error(`a worker ended (${end.signal ?? end.code}):\n${output.slice(-4_000)}`)
  }
}

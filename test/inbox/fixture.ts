/** What the inbox tests share: a scratch database per file, a box in a schema of its own per test, and a ledger. */
import pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import type { BoxOptions, Context, Incoming, Logger, Message, MessageMap, State } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

export type TestOptions<M extends MessageMap> = Omit<BoxOptions<M, pg.PoolClient, PgClient>, 'db' | 'schema'>

/** A line of the ledger: written by handlers in their own transaction, so it counts effects that committed. */
export interface Effect {
  readonly consumer: string
  readonly id: string
  readonly note: string
}

/** One consumer's view of a message, read past the library: it checks from outside. */
export interface Fate {
  readonly consumer: string
  readonly state: State | 'failed'
  readonly attempts: number
  readonly reason: string | null
  readonly error: { name: string; message: string; code?: string; stack?: string; cause?: unknown } | null
  /** Milliseconds until it falls due, on the box's clock; null if it waits for somebody. */
  readonly dueInMs: number | null
}

export interface Quarantined {
  readonly consumer: string
  readonly source: string
  readonly id: string | null
  readonly type: string
  readonly reason: string
  readonly detail: string
  readonly body: string | null
  readonly bytes: Buffer | null
}

export interface Ledger {
  /** Writes a line in the handler's transaction. */
  write(tx: PgClient, consumer: string, message: Pick<Message, 'id'>, note?: string): Promise<void>
  /** The lines that committed, in the order in which they were written. */
  effects(): Promise<Effect[]>
  /** The ids in the ledger, in order. */
  ids(): Promise<string[]>
  /** What became of a message, by consumer. */
  fates(id: string): Promise<Fate[]>
  /** What became of a message that only one consumer has. */
  fate(id: string): Promise<Fate>
  quarantine(): Promise<Quarantined[]>
  /** Drains until these messages are handled for everybody: conflicts are retried after a moment. */
  waitUntilHandled(...ids: string[]): Promise<void>
  /** Runs a statement outside of every transaction under test; `ob.` stands for the schema. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

export type Bench<M extends MessageMap = MessageMap> = TestBox<M, pg.PoolClient, PgClient> & Ledger

export interface Server {
  readonly pool: pg.Pool
  readonly url: string
  /** A box in a scratch schema, with a ledger. Dispose of it with `await using`. */
  open<const M extends MessageMap = MessageMap>(options?: TestOptions<M>): Promise<Bench<M>>
}

export function useServer(name: string, config: pg.PoolConfig = {}): Server {
  let database: ScratchDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    database = await scratchDatabase(`inbox_${name}`)
    pool = new pg.Pool({ connectionString: database.url, max: 10, ...config })
    pool.on('error', () => {})
  })
  afterAll(async () => {
    await pool.end()
    await database.close()
  })
  return {
    get pool() {
      return pool
    },
    get url() {
      return database.url
    },
    async open<const M extends MessageMap = MessageMap>(options: TestOptions<M> = {}) {
      const box = await createTestBox<pg.PoolClient, PgClient, M>({ db: fromPg(pool), ...options })
      const ledger = await createLedger(pool, box.schema)
      return Object.assign(box, ledger, {
        waitUntilHandled: (...ids: string[]) =>
          waitUntil(
            async () => {
              await box.drain()
              const all = await Promise.all(ids.map((id) => ledger.fates(id)))
              return all.every((fates) => fates.length > 0 && fates.every(({ state }) => state === 'handled'))
            },
            { what: `${ids.length} messages to be handled` },
          ).then(() => undefined),
      })
    },
  }
}

async function createLedger(pool: pg.Pool, schema: string): Promise<Omit<Ledger, 'waitUntilHandled'>> {
  const bind = (text: string): string => text.replace(/\bob\./g, `${schema}.`)
  const sql = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await pool.query<Record<string, unknown>>(bind(text), values)).rows
  await sql('create table ob.test_ledger (n bigserial primary key, consumer text, id text, note text)')
  const effects = async (): Promise<Effect[]> =>
    (await sql('select consumer, id, note from ob.test_ledger order by n')) as unknown as Effect[]
  const fates = async (id: string): Promise<Fate[]> => {
    const rows = await sql(
      `select m.consumer, coalesce(w.parked, case when w.id is null then 'handled'
           when w.token is not null or l.token is not null then 'processing' else 'pending' end) state,
         coalesce(w.attempts, 0) attempts, w.reason, w.error,
         case when coalesce(l.due_at, w.due_at) < 'infinity'
           then extract(epoch from coalesce(l.due_at, w.due_at) - ob.now())::float8 * 1000 end due
       from ob.message m left join ob.work w using (consumer, source, id)
       left join ob.lane l on l.consumer = w.consumer and l.key = w.lane
       where coalesce(m.origin_id, m.id) = $1 order by m.consumer`,
      [id],
    )
    return rows.map((row) => ({
      consumer: row['consumer'] as string,
      state: row['state'] as Fate['state'],
      attempts: Number(row['attempts']),
      reason: row['reason'] as string | null,
      error: row['error'] === null ? null : (JSON.parse(row['error'] as string) as Fate['error']),
      dueInMs: row['due'] === null ? null : Number(row['due']),
    }))
  }
  return {
    sql,
    effects,
    fates,
    async fate(id) {
      const [fate, ...others] = await fates(id)
      if (!fate || others.length > 0) throw new Error(`${id} is known to ${others.length + (fate ? 1 : 0)} consumers`)
      return fate
    },
    async write(tx, consumer, { id }, note = '') {
      await tx.query(bind('insert into ob.test_ledger (consumer, id, note) values ($1, $2, $3)'), [consumer, id, note])
    },
    ids: async () => (await effects()).map(({ id }) => id),
    quarantine: async () =>
      (await sql(
        `select consumer, source, nullif(id, '') id, type, reason, detail, body, bytes from ob.quarantine order by n`,
      )) as unknown as Quarantined[],
  }
}

/** A message of type `note`, with whatever else is given. */
export function note(id: string, rest: Partial<Incoming> = {}): Incoming {
  return { id, type: 'note', data: { text: id }, ...rest } as Incoming
}

/** `notes(3)` are n1, n2 and n3. */
export function notes(count: number, rest: Partial<Incoming> = {}): Incoming[] {
  return Array.from({ length: count }, (_, at) => note(`n${at + 1}`, rest))
}

/** A promise to resolve by hand. */
export function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open: (value: T) => void = () => {}
  const opened = new Promise<T>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Keeps what it was told. */
export function recorder(): Logger & { readonly lines: { level: string; about: object; text: string | undefined }[] } {
  const lines: { level: string; about: object; text: string | undefined }[] = []
  const at =
    (level: string) =>
    (about: object, text?: string): void =>
      void lines.push({ level, about, text })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Ends the transaction by a command that looks like part of a string, which PostgreSQL alone can tell. */
export async function hide(tx: pg.PoolClient, command: string): Promise<void> {
  await tx.query('SET LOCAL standard_conforming_strings = off')
  await tx.query(`select 'a\\'';${command};--'`)
}

export type Ctx = Context<MessageMap, pg.PoolClient>

/** Three messages; the handler of the second misbehaves. */
export async function misbehave(box: Bench, act: (ctx: Ctx, message: Message) => unknown): Promise<void> {
  box.consumer(
    'a',
    {
      async note(message, ctx) {
        await box.write(ctx.tx, 'a', message)
        if (message.id === 'n2') await act(ctx, message)
        await box.write(ctx.tx, 'a', message, 'again')
      },
    },
    { retry: { attempts: 1 } },
  )
  await box.receive(notes(3))
  await box.drain()
}

/** The neighbours of n2 are handled exactly once, and n2 left nothing but its error. */
export async function expectOnlySecondDead(box: Bench, code: string): Promise<void> {
  expect((await box.effects()).map(({ id, note: text }) => `${id}${text}`).sort()).toEqual(
    ['n1', 'n1again', 'n3', 'n3again'].sort(),
  )
  expect(await box.fate('n1')).toMatchObject({ state: 'handled' })
  expect(await box.fate('n3')).toMatchObject({ state: 'handled' })
  expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 1, error: { code } })
}

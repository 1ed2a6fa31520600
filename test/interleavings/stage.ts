/**
 * Where two parties meet: the first runs its statements in a transaction that stays open, the second runs against it and
 * waits, skips or goes through, then the first commits or rolls back. Waiting is seen in the server, never guessed by
 * the clock.
 */
import pg from 'pg'
import { toText } from '../../src/postgres/statement.js'

export type Row = Readonly<Record<string, unknown>>

/** What a party may do in its transaction. A statement is written against the schema `ob`. */
export interface Hand {
  run(statement: string, param: unknown): Promise<Row[]>
  /** Tokens of this party: different ones for whoever acts first, second or third. */
  readonly token: string
  /** Commits what was done so far: what follows is in a transaction of its own. */
  next(): Promise<void>
}

/** How a transaction ended, and what its party knows of it. */
export interface Ended<Deed> {
  readonly deed: Deed | undefined
  /** The SQLSTATE, or the message of what its own code threw. Then nothing of it was committed. */
  readonly refused: string | undefined
}

export const TOKENS = {
  /** Who held the row before anybody acted. */
  A: 'aaaaaaaa-0000-4000-8000-000000000000',
  B: 'bbbbbbbb-0000-4000-8000-000000000000',
} as const

/** The statements that were run, as they are written. */
export const ran = new Set<string>()

export class Actor {
  readonly #client: pg.Client
  readonly #bind: (statement: string) => string
  readonly #names = new Map<string, string>()
  readonly token: string
  readonly pid: number

  private constructor(client: pg.Client, bind: (statement: string) => string, at: number, pid: number) {
    this.#client = client
    this.#bind = bind
    this.token = `${String(at).repeat(8)}-0000-4000-8000-000000000000`
    this.pid = pid
  }

  static async connect(url: string, schema: string, at: number): Promise<Actor> {
    const client = new pg.Client({ connectionString: url, application_name: `actor ${at}` })
    client.on('error', () => {})
    await client.connect()
    // The rows of thousands of cells share their tables; a plan made when they were empty must not read them all.
    await client.query(`set enable_seqscan = off; set jit = off; set synchronous_commit = off;
      set plan_cache_mode = force_generic_plan`)
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    return new Actor(client, (text) => text.replace(/\b(?:ob|to_box)\./g, `${schema}.`), at, rows[0]!.pid)
  }

  async run(statement: string, param: unknown): Promise<Row[]> {
    ran.add(statement)
    let name = this.#names.get(statement)
    if (name === undefined) this.#names.set(statement, (name = `s${this.#names.size}`))
    const text = this.#bind(statement)
    return (await this.#client.query<Row>({ name, text, values: [toText(param)] })).rows
  }

  /** Several statements at once, with their values in them. */
  async script(text: string): Promise<Row[]> {
    const answer = (await this.#client.query<Row>(this.#bind(text))) as pg.QueryResult<Row> | pg.QueryResult<Row>[]
    return (Array.isArray(answer) ? answer.at(-1)! : answer).rows
  }

  async next(): Promise<void> {
    await this.script('commit; begin')
  }

  /** Is that one waiting for this one, or for one of the others? */
  async sees(waiting: Actor, others: readonly Actor[]): Promise<boolean> {
    const pids = [this, ...others].map(({ pid }) => pid).join(', ')
    const [row] = await this.script(`select pg_blocking_pids(${waiting.pid}) && array[${pids}] as it`)
    return row!['it'] === true
  }

  close(): Promise<void> {
    return this.#client.end()
  }
}

/** A transaction that has run its statements and is neither committed nor rolled back. */
export interface Open<Deed> {
  readonly actor: Actor
  readonly deed: Deed | undefined
  readonly refused: string | undefined
  end(outcome: Outcome): Promise<Ended<Deed>>
}

export type Outcome = 'commit' | 'rollback'

export async function openTransaction<Deed>(actor: Actor, work: (hand: Hand) => Promise<Deed>): Promise<Open<Deed>> {
  await actor.script('begin')
  let deed: Deed | undefined
  let refused: string | undefined
  try {
    deed = await work(actor)
  } catch (error) {
    refused = reasonOf(error)
  }
  return {
    actor,
    deed,
    refused,
    async end(outcome) {
      if (outcome === 'rollback' || refused !== undefined) {
        await actor.script('rollback')
        return { deed: undefined, refused: refused ?? 'rolled back' }
      }
      try {
        await actor.script('commit')
      } catch (error) {
        return { deed: undefined, refused: reasonOf(error) }
      }
      return { deed, refused: undefined }
    },
  }
}

/** Sends a party's work. Resolves when it has ended, or when it waits: for the first of these, who looks, or for another. */
export async function send<Deed>(
  actor: Actor,
  work: (hand: Hand) => Promise<Deed>,
  [watcher, ...others]: readonly [Actor, ...Actor[]],
): Promise<Sent<Deed>> {
  let ended = false
  const result = openTransaction(actor, work).then(async (open) => {
    const end = await open.end('commit')
    ended = true
    return end
  })
  for (;;) {
    // A turn for an answer that is here already: most do not wait, and a question would cost more than they do.
    for (let turn = 0; turn < 3 && !ended; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (ended) return { waited: false, result }
    if (await watcher.sees(actor, others)) return { waited: true, result }
  }
}

export interface Sent<Deed> {
  readonly waited: boolean
  readonly result: Promise<Ended<Deed>>
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message: string }
  return code ?? message
}

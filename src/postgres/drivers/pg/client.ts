/**
 * pg's client as this driver sees it. Structural, so that importing oncebox never imports pg; what only some
 * versions or builds have (pipeline mode from 8.23, the native client) is optional and asked for where it is used.
 */

import { sharedByCopies } from '../../../copies.js'
import { ignore } from '../watch.js'
import { named } from './named.js'

/** A client: what `send` and `once` accept. A pool has no `escapeIdentifier`, so it does not compile. */
export interface PgClient {
  // pg overloads `query`; only with the values spelled `any[]` does its own type match.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  query(text: string, values: any[]): Promise<{ rows: any[] }>
  escapeIdentifier(text: string): string
}

/** A pool, as `fromPg` takes it. Both overloads are spelled out, or `C` would not be inferred. */
export interface PgPool<C> {
  connect: {
    (): Promise<C>
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    (done: (...args: any[]) => void): void
  }
}

export interface Statement {
  readonly text: string
  readonly values?: readonly unknown[]
  readonly name?: string
}

export interface Answer {
  readonly command?: string
  readonly rows: readonly Record<string, unknown>[]
}

export interface Notice {
  readonly severity?: string
  readonly code?: string
  readonly message?: string
}

type Listener = (...args: never[]) => void

export interface Client {
  query(
    statement: string | object,
    values: readonly unknown[] | undefined,
    done: (error: Error | null | undefined, answer: Answer | Answer[]) => void,
  ): unknown
  on(event: string, listener: Listener): unknown
  off(event: string, listener: Listener): unknown
  release?(error?: Error | boolean): void
  connect?(): Promise<unknown>
  end?(): Promise<void>
  ref?(): void
  unref?(): void
  getTransactionStatus?(): string | null
  pipeline?: boolean
  readonly readyForQuery?: boolean
  readonly _connected?: boolean
  _connectionTimeoutMillis?: number
  /** What its owner wants promises to be. */
  readonly _Promise?: PromiseConstructor
  readonly connection?: {
    on?(event: string, listener: Listener): unknown
    readonly stream?: {
      cork?(): void
      uncork?(): void
      destroy?(reason?: Error): void
      readonly writableCorked?: number
      readonly bytesRead?: number
    }
  }
  readonly host?: string
  readonly port?: number
  readonly processID?: number | null
  readonly secretKey?: number | null
}

export interface PoolOptions {
  readonly max?: number
  readonly password?: unknown
  readonly connectionTimeoutMillis?: number
  readonly stream?: unknown
  readonly onConnect?: (client: Client) => unknown
}

export interface Pool {
  connect(): Promise<Client>
  on?(event: string, listener: Listener): unknown
  listenerCount?(event: string): number
  Client?: new (options: object) => Client
  readonly options?: PoolOptions
  readonly ending?: boolean
  readonly totalCount?: number
  readonly idleCount?: number
  readonly waitingCount?: number
}

const heard = sharedByCopies('heard', () => new WeakMap<Client, number>())

/** Notes that the server has answered on this connection just now. */
export function heardFrom(client: Client): void {
  heard.set(client, performance.now())
}

/** True if nothing was heard on this connection since that moment. */
export function isSilentSince(client: Client, moment: number): boolean {
  return moment > (heard.get(client) ?? 0)
}

/**
 * Sends one statement. By callback rather than promise: pg calls it in the same tick in which it reads the answer,
 * so a notice that follows in the same packet is known to belong to the next statement. `answered` hears of it first, and
 * may answer with an error that explains it better.
 */
export function ask(client: Client, statement: Statement, answered?: (error?: unknown) => unknown): Promise<Answer> {
  const { name, text, values } = statement
  return new Promise((resolve, reject) => {
    client.query(name === undefined ? text : named(name, text), values, (error, answer) => {
      const reason = answered?.(error ?? undefined) ?? error
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- it comes from pg
      if (reason) reject(reason)
      // Several commands in one text give an array; the last one is the answer.
      else resolve(Array.isArray(answer) ? (answer.at(-1) as Answer) : answer)
    })
  })
}

/**
 * What is sent from here on, until the code that sends it waits for something, leaves in one packet: each write of its
 * own costs both sides a system call, which is most of what a short statement takes.
 */
export function sendTogether({ connection }: Client): void {
  const stream = connection?.stream
  // What holds it back already lets it go in this tick.
  if (!stream?.cork || !stream.uncork || stream.writableCorked) return
  stream.cork()
  process.nextTick(() => stream.uncork!())
}

/** A client outside the pool, with the pool's settings, connected. Undefined if the pool does not say how. */
export function dedicated(pool: Pool, extra: object = {}): Promise<Client> | undefined {
  const { Client, options } = pool
  if (Client === undefined || options === undefined) return undefined
  return connectTo(Client, options, extra)
}

async function connectTo(Client: NonNullable<Pool['Client']>, options: PoolOptions, extra: object): Promise<Client> {
  const client = new Client({
    ...options,
    // pg-pool makes the password non-enumerable, so the spread leaves it out.
    ...(options.password === undefined ? {} : { password: options.password }),
    connectionTimeoutMillis: options.connectionTimeoutMillis || 10_000,
    pipeline: false,
    ...extra,
  })
  // Without a listener the 'error' event of a restarted server would end the process.
  client.on('error', ignore)
  try {
    await client.connect?.()
    await options.onConnect?.(client)
  } catch (error) {
    void client.end?.().catch(ignore)
    throw error
  }
  return client
}

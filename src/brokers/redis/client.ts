/**
 * The client: loaded when it is needed, and used for one thing, to send commands and to get their replies as bytes.
 *
 * A connection is not repaired but replaced: a command whose connection is lost fails at once, and its sender
 * opens another one, with a backoff of its own.
 */
import { within } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import type { ResolvedConnection } from './options.js'

export type Argument = string | Buffer
/** Of RESP 2: bytes, numbers, nothing, and lists of these. A reply that is an error rejects. */
export type Reply = Buffer | string | number | null | Reply[]

export interface Connection {
  readonly isOpen: boolean
  /** Rejects if there is no reply after so long; the connection is given up then. */
  command(args: readonly Argument[], timeoutMs: number): Promise<Reply>
  close(): void
}

const CONNECT_MS = 5_000

export async function connect({ url, connection }: ResolvedConnection): Promise<Connection> {
  const { createClient, RESP_TYPES } = await loadClient()
  const client = createClient({
    ...connection,
    url,
    RESP: 2,
    disableOfflineQueue: true,
    socket: { connectTimeout: CONNECT_MS, ...(connection['socket'] as object), reconnectStrategy: false },
  })
  // Without a listener an error would end the process. Commands that wait for a reply are rejected.
  client.on('error', () => undefined)
  const options = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }
  const close = (): void => {
    if (client.isOpen) client.destroy()
  }
  const answerIn = async <T>(ms: number, answer: Promise<T>): Promise<T> => {
    let late: Error | undefined
    try {
      return await within(ms, answer, () => (late = new Error(`Redis did not answer in ${ms} ms`)))
    } finally {
      // Not before it is told: what is closed fails as well, and says something else.
      if (late) close()
    }
  }
  await answerIn(CONNECT_MS, client.connect())
  return {
    get isOpen() {
      return client.isReady
    },
    command: (args, timeoutMs) => answerIn(timeoutMs, client.sendCommand(args, options)),
    close,
  }
}

/** What is used of the package `redis`. Its own types are those of every command of every module. */
interface RedisPackage {
  readonly RESP_TYPES: { readonly BLOB_STRING: number }
  createClient(options: object): {
    readonly isOpen: boolean
    readonly isReady: boolean
    on(event: 'error', listener: (error: unknown) => void): void
    connect(): Promise<unknown>
    sendCommand(args: readonly Argument[], options: object): Promise<Reply>
    destroy(): void
  }
}

async function loadClient(): Promise<RedisPackage> {
  const name: string = 'redis'
  try {
    return (await import(name)) as RedisPackage
  } catch (cause) {
    throw new OnceboxError('OPTION_INVALID', 'oncebox/redis needs the client of Redis: npm install redis', { cause })
  }
}

/** The first word of an error that the server answered, such as NOGROUP; undefined if it is none of the server's. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? /^[A-Z]+(?= )/.exec(error.message)?.[0] : undefined
}

/**
 * A TCP proxy in front of PostgreSQL that knows where statements begin and their answers end, so that a test can cut or
 * hold a connection exactly at COMMIT. Messages that travel with it in one packet are told apart.
 *
 *   before   what the client sent up to the statement has reached the server; the statement has not
 *   during   the server has the statement; the client gets nothing more, answered or not
 *   after    the server has answered the statement; the client has not seen the answer
 */
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './postgres.js'
import { MessageReader, StatementReader, type WireMessage } from './wire.js'

export type Moment = 'before' | 'during' | 'after'

export interface InterceptOptions {
  at: Moment
  /** Default: a COMMIT, alone or at the end of a simple query of several statements. */
  statement?: RegExp
  /** Only on this connection; see `Intercepted.connection` and the log. */
  connection?: number
}

/** A statement that is being held. Nothing moves on its connection in the held direction until one of these is called. */
export interface Intercepted {
  readonly connection: number
  readonly statement: string
  /** With `after`: what the server answered, as a command tag (`COMMIT`, `ROLLBACK`) or an SQLSTATE. */
  readonly answer: string | undefined
  release(): void
  cut(options?: CutOptions): void
}

export interface CutOptions {
  /** The client sees a reset (ECONNRESET) instead of an orderly end. */
  reset?: boolean
}

/** Connections that went silent. Both ends still see an open socket: what they write is taken, and goes nowhere. */
export interface Swallowed {
  readonly connections: readonly number[]
  /** Everything arrives late, as after a network that came back. Without it the connections stay silent. */
  giveBack(): void
}

export interface ProxyLogEntry {
  at: number
  connection: number
  /** `answer` is logged when the server gave it, `delivered` when it was passed on to the client. */
  event: 'open' | 'statement' | 'answer' | 'delivered' | 'held' | 'released' | 'cut' | 'closed'
  /** The text of the statement, or the command tag or SQLSTATE of the answer. */
  text?: string
}

export interface PostgresProxy {
  /** The target's URL with the proxy's address. */
  readonly url: string
  readonly log: readonly ProxyLogEntry[]
  readonly connections: readonly number[]
  /** Holds the next such statement, once. */
  intercept(options: InterceptOptions): Promise<Intercepted>
  /** Cuts the connection of the next COMMIT, once. Resolves when it is cut. */
  cutAtCommit(at: Moment, options?: CutOptions): Promise<Intercepted>
  cutAll(options?: CutOptions): void
  /** New connections get ECONNREFUSED; those that exist stay. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /** No byte passes in either direction, and new connections get no answer: a database that hangs. */
  pause(): void
  resume(): void
  /** No byte passes on the connections that exist, and nobody is told; new connections work: a silent network death. */
  swallow(): Swallowed
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const COMMIT = /(?:^|;)\s*(?:commit|end)(?:\s+(?:work|transaction))?(?:\s+and\s+(?:no\s+)?chain)?\s*;?\s*$/i

export async function startProxy(targetUrl: string): Promise<PostgresProxy> {
  const target = new URL(targetUrl)
  const port = await freePort()
  const url = new URL(targetUrl)
  url.hostname = '127.0.0.1'
  url.port = String(port)

  const log: ProxyLogEntry[] = []
  const connections = new Map<number, Connection>()
  const armed: Armed[] = []
  let paused = false
  let opened = 0
  let listener: Server | undefined

  const host: ConnectionHost = {
    connect: () => createConnection(Number(target.port || 5432), target.hostname),
    note: (connection, event, text) => log.push({ at: Date.now(), connection, event, ...(text ? { text } : {}) }),
    takeArmed(connection, statement) {
      const index = armed.findIndex(
        (one) =>
          one.pattern.test(statement) &&
          (one.options.connection === undefined || one.options.connection === connection),
      )
      return index < 0 ? undefined : armed.splice(index, 1)[0]
    },
    closed: (connection) => connections.delete(connection),
  }

  const accept = async () => {
    if (listener) return
    const server = createServer((client) => {
      const connection = new Connection(++opened, client, host)
      connections.set(connection.id, connection)
      if (paused) connection.pause()
    })
    listener = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => resolve())
    })
  }

  const refuse = async () => {
    const server = listener
    listener = undefined
    // close() frees the port at once, and calls back only when the last connection has ended.
    server?.close()
    await new Promise((resolve) => setImmediate(resolve))
  }

  const intercept = (options: InterceptOptions) =>
    new Promise<Intercepted>((resolve) => armed.push({ options, pattern: options.statement ?? COMMIT, resolve }))

  const cutAll = (options?: CutOptions) => {
    for (const connection of [...connections.values()]) connection.cut(options)
  }

  const close = async () => {
    await refuse()
    cutAll()
  }

  await accept()
  return {
    url: url.href,
    log,
    get connections() {
      return [...connections.keys()]
    },
    intercept,
    async cutAtCommit(at, options) {
      // In the same turn as the interception: a waiting `await` would let the test's own code run first.
      return new Promise((resolve) =>
        armed.push({
          options: { at },
          pattern: COMMIT,
          resolve: (held) => {
            held.cut(options)
            resolve(held)
          },
        }),
      )
    },
    cutAll,
    refuse,
    accept,
    pause() {
      paused = true
      for (const connection of connections.values()) connection.pause()
    },
    resume() {
      paused = false
      for (const connection of connections.values()) connection.resume()
    },
    swallow() {
      const silent = [...connections.values()]
      for (const connection of silent) connection.pause()
      return {
        connections: silent.map(({ id }) => id),
        giveBack() {
          for (const connection of silent) connection.resume()
        },
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

interface Armed {
  options: InterceptOptions
  pattern: RegExp
  resolve(intercepted: Intercepted): void
}

interface ConnectionHost {
  connect(): Socket
  note(connection: number, event: ProxyLogEntry['event'], text?: string): void
  takeArmed(connection: number, statement: string): Armed | undefined
  closed(connection: number): void
}

/** What the server still has to answer: a simple query and a Sync each end with ReadyForQuery, an Execute before it. */
interface Pending {
  kind: 'query' | 'execute' | 'sync'
  statement: string
  answer?: string
  target?: Armed
}

class Connection {
  readonly id: number
  readonly #client: Socket
  readonly #host: ConnectionHost
  readonly #server: Socket
  readonly #fromClient = new MessageReader('startup')
  readonly #fromServer = new MessageReader('messages')
  readonly #statements = new StatementReader()
  readonly #pending: Pending[] = []
  /** Set while that direction is held: what has piled up behind. */
  #heldRequests: WireMessage[] | undefined
  #heldAnswers: { bytes: Buffer; answer?: string }[] | undefined
  #serverEnded = false
  #cut = false

  constructor(id: number, client: Socket, host: ConnectionHost) {
    this.id = id
    this.#client = client
    this.#host = host
    this.#server = host.connect()
    host.note(id, 'open')
    client.setNoDelay(true)
    this.#server.setNoDelay(true)

    client.on('data', (chunk) => this.#together(this.#server, () => this.#readClient(chunk)))
    this.#server.on('data', (chunk) => this.#together(client, () => this.#readServer(chunk)))
    client.on('error', () => {})
    this.#server.on('error', () => {})
    client.on('close', () => {
      this.#server.end()
      this.#host.closed(id)
      this.#host.note(id, 'closed')
    })
    this.#server.on('close', () => {
      this.#serverEnded = true
      if (!this.#heldAnswers) client.end()
    })
  }

  pause(): void {
    this.#client.pause()
    this.#server.pause()
  }

  resume(): void {
    this.#client.resume()
    this.#server.resume()
  }

  /** The server gets what was already passed on, then an orderly end: as if the client's machine had gone. */
  cut(options: CutOptions = {}): void {
    if (this.#cut || this.#client.destroyed) return
    this.#cut = true
    this.#heldRequests = undefined
    this.#heldAnswers = undefined
    this.#host.note(this.id, 'cut')
    if (options.reset) this.#client.resetAndDestroy()
    else this.#client.destroy()
    this.#server.resume()
    this.#server.end()
  }

  /** One write per packet read, or a thousand small messages would be a thousand packets. */
  #together(destination: Socket, work: () => void): void {
    if (this.#cut) return
    destination.cork()
    work()
    destination.uncork()
  }

  #readClient(chunk: Buffer): void {
    for (const message of this.#fromClient.read(chunk)) {
      if (message.type === 'ssl') this.#client.write('N')
      else this.#arrive(message)
      if (this.#cut) return
    }
  }

  #arrive(message: WireMessage): void {
    if (this.#heldRequests) this.#heldRequests.push(message)
    else this.#request(message)
  }

  #request(message: WireMessage): void {
    const statement = this.#statements.read(message)
    if (statement === undefined) return this.#pass(message)

    this.#host.note(this.id, 'statement', statement)
    const armed = this.#host.takeArmed(this.id, statement)
    if (!armed) return this.#pass(message, statement)

    if (armed.options.at === 'before') {
      this.#heldRequests = []
      return this.#intercepted(armed, statement, undefined, () => {
        const behind = this.#heldRequests ?? []
        this.#heldRequests = undefined
        this.#pass(message, statement)
        // One of them may be held in its turn; the rest then waits behind it.
        for (const next of behind) this.#arrive(next)
      })
    }
    if (armed.options.at === 'after') return this.#pass(message, statement, armed)

    this.#heldAnswers = []
    this.#pass(message, statement, undefined, () =>
      this.#intercepted(armed, statement, undefined, () => this.#releaseAnswers()),
    )
  }

  #pass(message: WireMessage, statement = '', target?: Armed, sent?: () => void): void {
    const kind = PENDING_KINDS[message.type]
    if (kind) this.#pending.push({ kind, statement, ...(target ? { target } : {}) })
    if (!this.#server.writable) return
    // Corked writes call back when they are flushed, so `sent` means that the kernel has it.
    this.#server.write(message.bytes, () => sent?.())
  }

  #readServer(chunk: Buffer): void {
    for (const message of this.#fromServer.read(chunk)) {
      const { answer, answered, target } = this.#settlePending(message)
      if (answer) this.#host.note(this.id, 'answer', answer)
      if (target) this.#heldAnswers ??= []

      if (this.#heldAnswers) this.#heldAnswers.push({ bytes: message.bytes, ...(answer ? { answer } : {}) })
      else this.#deliver(message.bytes, answer)

      if (target?.target && answered) {
        const armed = target.target
        delete target.target
        this.#intercepted(armed, target.statement, target.answer, () => this.#releaseAnswers())
      }
      if (this.#cut) return
    }
  }

  /**
   * Finds the statement that a message of the server belongs to. After an error the server skips to the next Sync, so
   * ReadyForQuery answers everything up to there.
   */
  #settlePending({ type, bytes }: WireMessage): { answer?: string; answered: boolean; target?: Pending } {
    const answer = type === 'C' ? commandTag(bytes) : type === 'E' ? sqlstate(bytes) : undefined
    const head = this.#pending[0]
    if (head && answer) head.answer = answer

    if (type === 'Z') {
      const last = this.#pending.findIndex(({ kind }) => kind !== 'execute')
      const target = this.#pending.splice(0, last + 1).find((one) => one.target)
      return { answered: true, ...(target ? { target } : {}) }
    }
    const ends = head?.kind === 'execute' && (type === 'C' || type === 'I' || type === 's')
    if (ends) this.#pending.shift()
    return { ...(answer ? { answer } : {}), answered: ends, ...(head?.target ? { target: head } : {}) }
  }

  #deliver(bytes: Buffer, answer: string | undefined): void {
    if (this.#client.writable) this.#client.write(bytes)
    if (answer) this.#host.note(this.id, 'delivered', answer)
  }

  #releaseAnswers(): void {
    const held = this.#heldAnswers ?? []
    this.#heldAnswers = undefined
    for (const { bytes, answer } of held) this.#deliver(bytes, answer)
    if (this.#serverEnded) this.#client.end()
  }

  #intercepted(armed: Armed, statement: string, answer: string | undefined, release: () => void): void {
    this.#host.note(this.id, 'held', statement)
    let open = true
    armed.resolve({
      connection: this.id,
      statement,
      answer,
      release: () => {
        if (!open || this.#cut) return
        open = false
        this.#host.note(this.id, 'released', statement)
        release()
      },
      cut: (options) => {
        open = false
        this.cut(options)
      },
    })
  }
}

const PENDING_KINDS: Record<string, Pending['kind']> = { Q: 'query', F: 'query', E: 'execute', S: 'sync' }

function commandTag(bytes: Buffer): string {
  return bytes.toString('utf8', 5, bytes.length - 1)
}

function sqlstate(bytes: Buffer): string {
  const fields = bytes.toString('utf8', 5).split('\0')
  return fields.find((field) => field.startsWith('C'))?.slice(1) ?? 'XX000'
}

/**
 * The sockets of a postgres.js pool. When packets vanish, postgres.js waits for an answer for as long as TCP does, and
 * offers no way to close one connection. It lets its owner make the sockets, though: `socket`, which is set here unless
 * the owner has set it, or names several hosts.
 *
 * A line is closed if the answer that it owes is one of ours, and nothing of it was heard for as long as that may take. One that
 * owes the answer to somebody else is left alone, however long that takes, and so are all lines while ours waits for one.
 */
import { connect, type Socket } from 'node:net'
import type { Asked } from './asked.js'

export interface LineOptions {
  socket?: ((options: LineOptions) => unknown) | undefined
  readonly host?: readonly string[] | undefined
  readonly port?: readonly number[] | undefined
  readonly path?: string | false | undefined
  readonly sslnegotiation?: unknown
}

interface Mark {
  readonly at: number
  readonly counts: ReadonlyMap<Socket, { readonly read: number; readonly written: number }>
}

/** Marks are shared by what is sent within so many ms: to count all sockets for each statement would cost too much. */
const SAME_MS = 20

/** Turns of the event loop in which postgres.js writes to a new socket; it takes one. */
const TURNS_TO_WRITE = 5

/** A line that was opened for what is waited for is a little younger than that is. */
const OPENING_SHARE = 0.5

export class Lines {
  /** By when they were opened. */
  readonly #open = new Map<Socket, number>()
  #latest: Mark | undefined

  constructor(options: LineOptions | undefined) {
    if (!options || options.socket !== undefined || (options.host?.length ?? 0) !== 1 || !options.port) return
    options.socket = (given) => this.#connect(given)
  }

  #connect({ path, host, port, sslnegotiation }: LineOptions): Socket {
    // Not awaited: what is written meanwhile waits, and postgres.js expects errors as events.
    const socket = path ? connect(path) : connect(port![0]!, host![0])
    // For the words of its errors, and the name on the server's certificate.
    Object.assign(socket, { host: host![0], port: port![0] })
    this.#open.set(socket, performance.now())
    // postgres.js removes all listeners at times, and a dead socket must go in any case.
    socket.once('close', () => this.#open.delete(socket))
    if (sslnegotiation !== 'direct') unblock(socket)
    return socket
  }

  /**
   * Looks every so many ms whether the line of what was asked is dead, and closes it if so: until the function that it answers with
   * is called, once there is an answer. Nobody may wait for the answer any more by then; whoever uses the line next does.
   */
  watch(asked: Asked, everyMs: number, looked: (cut: boolean) => void): () => void {
    let mark = this.#mark()
    let wasNext = false
    let wasBehind = false
    // postgres.js sends within this turn, if it can.
    setImmediate(() => (wasBehind ||= asked.place === 'behind'))
    const look = (): void => {
      timer = setTimeout(look, everyMs)
      timer.unref()
      const cut = this.#cutIfDead(asked, { mark, wasNext, wasBehind, everyMs })
      mark = this.#mark()
      wasNext = asked.place === 'next'
      wasBehind = asked.place === 'behind'
      looked(cut)
    }
    let timer = setTimeout(look, everyMs)
    return () => clearTimeout(timer)
  }

  #cutIfDead(asked: Asked, { mark, wasNext, wasBehind, everyMs }: Look): boolean {
    // Without lines of ours, ending a connection would leave its place in the pool taken by a socket that never closes.
    if (asked.place === 'behind' || this.#open.size === 0) return false
    if (asked.place === 'waiting') return this.#cutOpening(everyMs)
    // What it was behind has been answered meanwhile: whichever line is silent, it is not this one.
    if (wasBehind) return false
    const silent = this.#silentSince(mark)
    // What was next at the last look already is an answer that has stopped on its way, or takes longer than twice its time.
    if (silent.length === 0 && !wasNext) return false
    const { connection } = asked
    if (connection) {
      this.cutLineOf(() => connection.terminate?.())
      return true
    }
    // The first query of its kind on a new connection: then it is one of these.
    for (const socket of silent) this.#cut(socket)
    return silent.length > 0
  }

  /** Lines on which nothing was ever heard. postgres.js opens another one for whoever waits for it. */
  #cutOpening(ms: number): boolean {
    const before = performance.now() - ms * OPENING_SHARE
    const stuck = [...this.#open].filter(([socket, since]) => since < before && socket.bytesRead === 0)
    for (const [socket] of stuck) this.#cut(socket)
    return stuck.length > 0
  }

  /**
   * Closes the one line on which `terminate` writes its farewell: that is how to learn which line a connection has. TLS writes it
   * a turn later if it is busy writing; others may write in that turn too, and are told apart only if they do not.
   */
  cutLineOf(terminate: () => void): void {
    const before = [...this.#open.keys()].map((socket) => [socket, socket.bytesWritten] as const)
    terminate()
    const look = (turns: number): void => {
      const written = before.filter(([socket, count]) => socket.bytesWritten > count)
      if (written.length === 1) this.#cut(written[0]![0])
      else if (written.length === 0 && turns > 0) setImmediate(look, turns - 1)
    }
    look(TURNS_TO_WRITE)
  }

  #cut(socket: Socket): void {
    this.#open.delete(socket)
    socket.destroy()
  }

  /** How much went over each line up to now. */
  #mark(): Mark {
    const at = performance.now()
    if (this.#latest && at - this.#latest.at < SAME_MS) return this.#latest
    const counts = new Map<Socket, { read: number; written: number }>()
    for (const socket of this.#open.keys()) {
      if (socket.destroyed) this.#open.delete(socket)
      else counts.set(socket, { read: socket.bytesRead, written: socket.bytesWritten })
    }
    return (this.#latest = { at, counts })
  }

  /** The lines on which something was sent since then and nothing was heard. */
  #silentSince({ counts }: Mark): Socket[] {
    return [...this.#open.keys()].filter((socket) => {
      const before = counts.get(socket) ?? { read: 0, written: 0 }
      return socket.bytesRead === before.read && socket.bytesWritten > before.written
    })
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size
  }
}

interface Look {
  readonly mark: Mark
  readonly wasNext: boolean
  readonly wasBehind: boolean
  readonly everyMs: number
}

/**
 * A socket that closes while postgres.js is about to write blocks that connection for good: what it writes from then on,
 * the startup message included, piles up until it is too long to wait. So a socket on which nothing is written at once is
 * closed, whereupon postgres.js opens another one and the pile grows; and the pile itself goes nowhere.
 */
function unblock(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  let written = false
  socket.write = (...args: unknown[]): boolean => {
    const [first] = args
    // The first packet is the length of itself and nothing else.
    if (!written && Buffer.isBuffer(first) && first.readInt32BE(0) !== first.length) {
      socket.destroy()
      return false
    }
    written = true
    return write(...args)
  }
  let turns = TURNS_TO_WRITE
  const look = (): void => {
    if (written || socket.destroyed) return
    if (--turns > 0) setImmediate(look)
    else socket.destroy()
  }
  setImmediate(look)
}

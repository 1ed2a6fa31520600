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
  readonly ssl?: unknown
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

/** So many bytes in a ms are no short answer: a tenth of what a slow line brings. */
const MUCH_IN_A_MS = 25

/** Looks that may find more of one answer. Nobody has a use for one that takes longer still. */
const MOST_ARRIVING = 30

/** A line that was opened for what is waited for is a little younger than that is. */
const OPENING_SHARE = 0.5

/**
 * What a look at the line of a statement has found:
 * - cut        it is dead, and was closed
 * - arriving   something was heard on it since the last look: the answer may be on its way
 * - left       nobody knows; the line was left alone
 */
export type Found = 'cut' | 'arriving' | 'left'

export class Lines {
  /** By when they were opened. */
  readonly #open = new Map<Socket, number>()
  #latest: Mark | undefined
  /** What is watched over, and was sent as soon as it was asked. */
  readonly #sentAtOnce = new Set<Asked>()
  /** Turns of the event loop after which a farewell is written at the latest: TLS may be busy, a plain socket takes it at once. */
  readonly #turnsToPart: number

  constructor(options: LineOptions | undefined) {
    this.#turnsToPart = options?.ssl ? TURNS_TO_WRITE : 0
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
  watch(asked: Asked, everyMs: number, looked: (found: Found) => void): () => void {
    let mark = this.#mark()
    let sent = mark
    let was: Look['was'] = 'sent'
    let times = 0
    const isNext = (): boolean => asked.place === 'next'
    const isLate = (): void => {
      was = 'late'
      this.#sentAtOnce.delete(asked)
    }
    this.#sentAtOnce.add(asked)
    // postgres.js sends within this turn, if it can.
    setImmediate(() => {
      if (!isNext()) isLate()
    })
    const look = (): void => {
      timer = setTimeout(look, everyMs)
      timer.unref()
      const found = this.#look(asked, { sent, mark, was, everyMs, times: (times += 1) })
      mark = this.#mark()
      if (isNext()) was = 'next'
      else {
        isLate()
        sent = mark
      }
      looked(found)
    }
    let timer = setTimeout(look, everyMs)
    return () => {
      clearTimeout(timer)
      this.#sentAtOnce.delete(asked)
    }
  }

  #look(asked: Asked, { sent, mark, was, everyMs, times }: Look): Found {
    // Without lines of ours, ending a connection would leave its place in the pool taken by a socket that never closes.
    if (asked.place === 'behind' || this.#open.size === 0) return 'left'
    if (asked.place === 'waiting') return this.#cutOpening(everyMs) ? 'cut' : 'left'
    if (was === 'next') {
      // An answer that has stopped on its way, or takes longer than twice its time, unless a large one goes on to come.
      if (times <= MOST_ARRIVING && this.#bringsMuchSince(mark, everyMs)) return 'arriving'
    } else {
      // Its own line was written to, and so has been heard of; or it is the one that much comes over, whoever else is silent.
      if (this.#silentSince(mark).length === 0 || this.#bringsMuchSince(mark, everyMs, true)) return 'arriving'
      // It may have been sent a moment ago: whichever line is silent, it need not be this one.
      if (was === 'late') return 'left'
    }
    const { connection } = asked
    if (connection) {
      this.cutLineOf(() => connection.terminate?.())
      return 'cut'
    }
    return !asked.begun && this.#cutSilent(sent) ? 'cut' : 'left'
  }

  /**
   * The line of a query whose connection nobody has told. If more are silent than we wait for, others may owe an answer to somebody
   * else, and none is closed. One that was not sent at once says nothing: its line may have been heard of since it was asked.
   */
  #cutSilent(sent: Mark): boolean {
    const waitedFor = [...this.#sentAtOnce].filter(({ place, connection, begun }) => {
      return place === 'next' && connection === undefined && !begun
    })
    const silent = this.#silentSince(sent)
    if (silent.length > waitedFor.length) return false
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
   * Closes the one line on which `terminate` writes its farewell: that is how to learn which line a connection has. One that was
   * opened before there was a driver is none of these, and none is closed for it. TLS writes the farewell a turn later if it is busy
   * writing; others may write in that turn too, and are told apart only if they do not.
   */
  cutLineOf(terminate: () => void): void {
    const before = [...this.#open.keys()].map((socket) => [socket, socket.bytesWritten] as const)
    terminate()
    const look = (turns: number): void => {
      const written = before.filter(([socket, count]) => socket.bytesWritten > count)
      if (written.length === 1) this.#cut(written[0]![0])
      else if (written.length === 0 && turns > 0) setImmediate(look, turns - 1)
    }
    look(this.#turnsToPart)
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

  /**
   * True if a large answer comes over one of them. While it does nothing is asked there, unless all others are busy, too; if it
   * was `asked` since then, it was written to.
   */
  #bringsMuchSince({ counts }: Mark, ms: number, asked = false): boolean {
    return [...this.#open.keys()].some((socket) => {
      const { read, written } = counts.get(socket) ?? { read: 0, written: 0 }
      return (asked || socket.bytesWritten === written) && socket.bytesRead - read > ms * MUCH_IN_A_MS
    })
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size
  }
}

/** What is known from the last look, or from when it was asked. */
interface Look {
  /** When it was sent, or at the last look before it was. */
  readonly sent: Mark
  readonly mark: Mark
  /** What it was at that mark: being sent, next on its line already, or not yet. */
  readonly was: 'sent' | 'next' | 'late'
  readonly everyMs: number
  /** How many looks there were, with this one. */
  readonly times: number
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

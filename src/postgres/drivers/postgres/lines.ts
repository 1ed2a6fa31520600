/**
 * The sockets of a postgres.js pool. When packets vanish, postgres.js waits for an answer for as long as TCP does, and
 * offers no way to close one connection. It lets its owner make the sockets, though: `socket`, which is set here unless
 * the owner has set it, or names several hosts.
 *
 * A line is dead if something was sent on it after a given mark and nothing was heard since, while it was waited for.
 */
import { connect, type Socket } from 'node:net'

export interface LineOptions {
  socket?: ((options: LineOptions) => unknown) | undefined
  readonly host?: readonly string[] | undefined
  readonly port?: readonly number[] | undefined
  readonly path?: string | false | undefined
  readonly sslnegotiation?: unknown
}

export interface Mark {
  readonly at: number
  readonly counts: ReadonlyMap<Socket, { readonly read: number; readonly written: number }>
}

/** Marks are shared by what is sent within so many ms: to count all sockets for each statement would cost too much. */
const SAME_MS = 20

/** Turns of the event loop in which postgres.js writes to a new socket; it takes one. */
const TURNS_TO_WRITE = 5

export class Lines {
  readonly #open = new Map<Socket, { readonly listens: boolean }>()
  #latest: Mark | undefined

  constructor(options: LineOptions | undefined) {
    if (!options || options.socket !== undefined || (options.host?.length ?? 0) !== 1 || !options.port) return
    options.socket = (given) => this.#connect(given, given !== options)
  }

  /** postgres.js hands a copy of its options for the connection that listens. */
  #connect({ path, host, port, sslnegotiation }: LineOptions, listens: boolean): Socket {
    // Not awaited: what is written meanwhile waits, and postgres.js expects errors as events.
    const socket = path ? connect(path) : connect(port![0]!, host![0])
    // For the words of its errors, and the name on the server's certificate.
    Object.assign(socket, { host: host![0], port: port![0] })
    this.#open.set(socket, { listens })
    // postgres.js removes all listeners at times, and a dead socket must go in any case.
    socket.once('close', () => this.#open.delete(socket))
    if (sslnegotiation !== 'direct') unblock(socket)
    return socket
  }

  /** How much went over each line up to now. */
  mark(): Mark {
    const at = performance.now()
    if (this.#latest && at - this.#latest.at < SAME_MS) return this.#latest
    return this.freshMark()
  }

  freshMark(): Mark {
    const at = performance.now()
    const counts = new Map<Socket, { read: number; written: number }>()
    for (const socket of this.#open.keys()) {
      if (socket.destroyed) this.#open.delete(socket)
      else counts.set(socket, { read: socket.bytesRead, written: socket.bytesWritten })
    }
    return (this.#latest = { at, counts })
  }

  /** Closes the lines on which something was sent since then and nothing was heard. Answers whether there were any. */
  cutDead({ counts }: Mark): boolean {
    let cut = false
    for (const [socket, { listens }] of this.#open) {
      const before = counts.get(socket)
      const unheard = before ? before.read === socket.bytesRead : socket.bytesRead === 0
      const asked = socket.bytesWritten > (before?.written ?? 0)
      // The one that listens is asked nothing; it is opened again at once.
      if (!unheard || !(asked || listens)) continue
      this.#open.delete(socket)
      socket.destroy()
      cut ||= asked
    }
    return cut
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size
  }
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

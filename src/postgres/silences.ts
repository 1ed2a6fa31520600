/**
 * Silences: finds transactions whose connection has died in silence, while handlers or a COMMIT wait for an answer.
 *
 * Time alone cannot tell a dead connection from a slow statement, so the server is asked over another connection: one
 * whose session is gone, or has waited for its client in its turn, will never answer. Both have to have waited for a while:
 * the last answer may be on its way. Only where the transaction has no id, by which the server could be asked, time has to do:
 * before it is opened for handlers that of a short statement, and in one with statements of ours alone that of each.
 */
import { sleep } from '../backoff.js'
import type { Driver } from './driver.js'
import { silent } from './errors.js'

const TRIES = 3

/** So long an answer may take that the server has given, or a statement to arrive there. */
const ON_ITS_WAY_MS = 1_000
const LOOK_AGAIN_MS = 50
/** A turn of the event loop that takes longer has kept the process from reading. */
const BUSY_MS = 20
const MOST_TURNS = 10

interface Open {
  readonly tx: unknown
  readonly forHandlers: boolean
  xid?: string
  /** What the statement under way may take; undefined if it is short. */
  limitMs?: number | undefined
}

export interface Watched {
  readonly driver: Driver<unknown, unknown>
  /** What a short statement may take. */
  shortMs(): number
  /** Those of these transactions that the server is not at work for: true if they are dead to a client that has waited for so long. */
  deaf(ms: number, transactions: readonly string[]): Promise<ReadonlyMap<string, boolean>>
}

export class Silences {
  readonly #watched: Watched
  readonly #open = new Map<unknown, Open>()
  #timer: NodeJS.Timeout | undefined
  #looking = false

  constructor(watched: Watched) {
    this.#watched = watched
  }

  get #possible(): boolean {
    const { driver } = this.#watched
    return driver.silentMs !== undefined && driver.hangUp !== undefined
  }

  begin(tx: unknown, forHandlers: boolean): void {
    if (!this.#possible) return
    this.#open.set(tx, { tx, forHandlers })
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => void this.#look(), this.#watched.shortMs() / 4)
    this.#timer.unref()
  }

  /** Is it one with statements of ours alone? */
  isOurs(tx: unknown): boolean {
    return this.#open.get(tx)?.forHandlers === false
  }

  /** What is under way in it may take so long; undefined for no longer than a short statement. */
  allow(tx: unknown, limitMs: number | undefined): void {
    const open = this.#open.get(tx)
    if (open) open.limitMs = limitMs
  }

  /** The transaction has an id, by which the server knows it. */
  opened(tx: unknown, xid: string): void {
    const open = this.#open.get(tx)
    if (open) open.xid = xid
  }

  end(tx: unknown): void {
    this.#open.delete(tx)
    if (this.#open.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /**
   * Finds out whether the connection is dead, and closes it if so. At once if the server is at work for it; what else is owed
   * an answer gets it, or it is dead.
   */
  async isDead(tx: unknown): Promise<Error | undefined> {
    const xid = this.#open.get(tx)?.xid
    if (xid === undefined) return undefined
    await readable()
    if (this.#silentMs(tx) === 0) return undefined
    const since = this.#silentSince(tx)
    for (;;) {
      const waited = performance.now() - since
      const deaf = await this.#deafForSure(xid)
      // The process may have been kept busy meanwhile, and have read this answer before that one.
      await readable()
      if (deaf === undefined || this.#hasAnswered(tx, since)) return undefined
      if (waited > ON_ITS_WAY_MS) return deaf ? this.#hangUp(tx) : undefined
      await sleep(LOOK_AGAIN_MS)
    }
  }

  /** The question may meet a connection that died as well, which is closed for it; then it is asked again. */
  async #deafForSure(xid: string): Promise<boolean | undefined> {
    for (let tries = 1; tries <= TRIES; tries++) {
      const deaf = await this.#watched.deaf(ON_ITS_WAY_MS, [xid]).catch(() => undefined)
      if (deaf !== undefined) return deaf.get(xid)
    }
    return undefined
  }

  async #look(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    try {
      await this.#askAbout(this.#watched.shortMs())
    } catch {
      // The database is away altogether, or nobody may look at its sessions. The next look asks again.
    } finally {
      this.#looking = false
    }
  }

  async #askAbout(shortMs: number): Promise<void> {
    await readable()
    const waiting: { tx: unknown; xid: string; since: number }[] = []
    for (const { tx, xid, limitMs = shortMs } of this.#open.values()) {
      const since = this.#silentSince(tx)
      const ms = performance.now() - since
      if (xid === undefined && ms > limitMs) this.#hangUp(tx)
      else if (xid !== undefined && ms > shortMs / 2) waiting.push({ tx, xid, since })
    }
    if (waiting.length === 0) return
    const deaf = await this.#watched.deaf(
      shortMs / 2,
      waiting.map(({ xid }) => xid),
    )
    await readable()
    for (const { tx, xid, since } of waiting) {
      if (deaf.get(xid) === true && !this.#hasAnswered(tx, since)) this.#hangUp(tx)
    }
  }

  /** Since when the server owes an answer: now, if it owes none. */
  #silentSince(tx: unknown): number {
    return performance.now() - this.#silentMs(tx)
  }

  #hasAnswered(tx: unknown, since: number): boolean {
    return this.#silentMs(tx) === 0 || this.#silentSince(tx) > since + 1
  }

  #silentMs(tx: unknown): number {
    return this.#watched.driver.silentMs?.(tx) ?? 0
  }

  #hangUp(tx: unknown): Error {
    const reason = silent(this.#silentMs(tx))
    this.#watched.driver.hangUp?.(tx, reason)
    return reason
  }
}

/**
 * A process that was kept busy has not read yet what was answered meanwhile. What is read comes before an immediate of the same
 * turn, but another immediate may keep the process busy in between: then it takes one more turn.
 */
async function readable(): Promise<void> {
  for (let turn = 1; turn <= MOST_TURNS; turn++) {
    const began = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (performance.now() - began <= BUSY_MS) return
  }
}

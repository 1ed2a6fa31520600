/**
 * Silences: finds transactions whose connection has died in silence, while handlers or a COMMIT wait for an answer.
 *
 * Time alone cannot tell a dead connection from a slow statement, so the server is asked over another connection: one
 * whose session is gone, or waits for its client in its turn, will never answer. Only before the transaction has an id,
 * when nothing but BEGIN and a short statement can be under way, time has to do.
 */
import type { Driver } from './driver.js'
import { silent } from './errors.js'

const TRIES = 3

interface Open {
  readonly tx: unknown
  xid?: string
}

export interface Watched {
  readonly driver: Driver<unknown, unknown>
  /** What a short statement may take. */
  shortMs(): number
  /** Which of these transactions are dead to a client that has waited for so long. */
  deaf(ms: number, transactions: readonly string[]): Promise<ReadonlySet<string>>
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

  begin(tx: unknown): void {
    if (!this.#possible) return
    this.#open.set(tx, { tx })
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => void this.#look(), this.#watched.shortMs() / 4)
    this.#timer.unref()
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

  /** Asks at once whether the connection is dead, and closes it if so. */
  async isDead(tx: unknown): Promise<Error | undefined> {
    const xid = this.#open.get(tx)?.xid
    const ms = this.#silentMs(tx)
    if (xid === undefined || ms === 0) return undefined
    const deaf = await this.#deafForSure(ms, xid)
    return deaf && this.#silentMs(tx) > 0 ? this.#hangUp(tx, ms) : undefined
  }

  /** The question may meet a connection that died as well, which is closed for it; then it is asked again. */
  async #deafForSure(ms: number, xid: string): Promise<boolean> {
    for (let tries = 1; tries <= TRIES; tries++) {
      const deaf = await this.#watched.deaf(ms, [xid]).catch(() => undefined)
      if (deaf !== undefined) return deaf.has(xid)
    }
    return false
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
    const waiting: { tx: unknown; xid: string }[] = []
    for (const { tx, xid } of this.#open.values()) {
      const ms = this.#silentMs(tx)
      if (xid === undefined && ms > shortMs) this.#hangUp(tx, ms)
      else if (xid !== undefined && ms > shortMs / 2) waiting.push({ tx, xid })
    }
    if (waiting.length === 0) return
    const deaf = await this.#watched.deaf(
      shortMs / 2,
      waiting.map(({ xid }) => xid),
    )
    for (const { tx, xid } of waiting) {
      const ms = this.#silentMs(tx)
      if (deaf.has(xid) && ms > shortMs / 2) this.#hangUp(tx, ms)
    }
  }

  #silentMs(tx: unknown): number {
    return this.#watched.driver.silentMs?.(tx) ?? 0
  }

  #hangUp(tx: unknown, ms: number): Error {
    const reason = silent(ms)
    this.#watched.driver.hangUp?.(tx, reason)
    return reason
  }
}

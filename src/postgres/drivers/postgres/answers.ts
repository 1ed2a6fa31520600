/** Answers: how long a statement may go without one, and what is done about the connections of a pool when none comes. */
import type { StatementOptions } from '../../driver.js'
import { silence, silent } from '../../errors.js'
import { ignore } from '../watch.js'
import { type Asked, Whereabouts } from './asked.js'
import type { Pending } from './gate.js'
import type { Found, Lines } from './lines.js'

/** How long a connection may take to answer a probe. */
const PROBE_MS = 2_000

/** What a probe is sent with: the pool, and the connection that listens, if there is one. */
export interface Pools {
  unsafe(text: string): Pending
  readonly listen?: { readonly sql?: { unsafe(text: string): Pending } }
}

export interface Awaited<T> {
  readonly asked: Asked
  readonly answer: Promise<T>
  /** Settles when the connection owes nothing more, if that is not with the answer. */
  readonly over?: Promise<unknown>
  /** Told with each look that finds no answer, nor more of it, and whether the connection was closed for it. */
  readonly late?: (reason: Error, cut: boolean) => void
}

export class Answers {
  readonly #pools: Pools
  readonly #lines: Lines
  readonly #whereabouts = new Whereabouts()
  readonly #met = new WeakSet<object>()
  #probing = false

  constructor(pools: Pools, lines: Lines) {
    this.#pools = pools
    this.#lines = lines
  }

  /** To be called before the query is sent. */
  follow(query: Pending): Asked {
    return this.#whereabouts.follow(query)
  }

  /**
   * The answer, or a rejection if it does not come in time. What was sent may take effect all the same. A large answer has its time
   * anew while it comes; that of a heartbeat is short, and its lease does not wait.
   */
  within<T>(options: StatementOptions, { asked, answer, over = answer, late = ignore }: Awaited<T>): Promise<T> {
    const { limitMs, urgent = false } = options
    if (limitMs === undefined) return answer
    return new Promise((resolve, reject) => {
      const stop = this.watch(asked, limitMs, (found) => {
        if (found === 'arriving' && !urgent) return
        const cut = found === 'cut'
        const reason = cut ? silent(limitMs) : unanswered(limitMs)
        late(reason, cut)
        reject(reason)
      })
      answer.then(resolve, reject)
      over.then(stop, stop)
    })
  }

  /** Looks after the line of what was asked until the function that it answers with is called. */
  watch(asked: Asked, limitMs: number, looked: (found: Found) => void): () => void {
    return this.#lines.watch(asked, limitMs, (found) => {
      if (found === 'cut') this.#probeAll(Math.min(limitMs, PROBE_MS))
      looked(found)
    })
  }

  /**
   * Learns the connection that listens, which never changes. postgres.js does not tell it of statements with values that are not
   * prepared, and heartbeats may be all that is ever sent there.
   */
  meet(listening: Pick<Pools, 'unsafe'>): void {
    if (this.#met.has(listening)) return
    this.#met.add(listening)
    this.#probe(listening, PROBE_MS).catch(() => this.#met.delete(listening))
  }

  /** Where one line was dead, idle ones may be: each probe goes to another idle connection, and tells whether it is alive. */
  #probeAll(ms: number): void {
    if (this.#probing) return
    this.#probing = true
    setTimeout(() => (this.#probing = false), ms).unref()
    const { listen } = this.#pools
    const pools: Pick<Pools, 'unsafe'>[] = Array.from({ length: this.#lines.size }, () => this.#pools)
    if (listen?.sql) pools.push(listen.sql)
    for (const pool of pools) this.#probe(pool, ms).catch(ignore)
  }

  /** Without values: postgres.js tells the connection of such a query. */
  #probe(pool: Pick<Pools, 'unsafe'>, ms: number): Promise<unknown> {
    const probe = pool.unsafe('select 1')
    const stop = this.#lines.watch(ifIdle(this.follow(probe)), ms, ignore)
    return probe.finally(stop)
  }
}

/** A probe that finds no idle connection tells nothing: it waits behind others. */
function ifIdle(asked: Asked): Asked {
  return {
    get place() {
      return asked.place === 'next' ? 'next' : 'behind'
    },
    get connection() {
      return asked.connection
    },
  }
}

function unanswered(ms: number): Error {
  const why = 'it may wait for a connection that others hold, or behind their statements'
  return silence(`the database gave no answer to a statement within ${Math.round(ms)} ms: ${why}`)
}

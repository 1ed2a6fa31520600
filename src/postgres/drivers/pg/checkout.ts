/** Connections of the pool, as they are had: in time, from a pool that lives, and none that may have died in silence. */
import { sharedByCopies } from '../../../copies.js'
import { fromTheDatabase, isPoolEnded, poolEnded } from '../../errors.js'
import { ignore } from '../watch.js'
import { hangUp } from './cancel.js'
import { type Client, heardFrom, isSilentSince, type Pool } from './client.js'

const LOOK_MS = 250
/** As postgres.js has it. A server that was asleep takes half of it to wake up. */
const OPENING_MS = 30_000

export class Checkout {
  readonly #pool: Pool
  /** A connection fell silent: those on which nothing was heard since this moment may be dead too. */
  #doubtedSince = -Infinity

  constructor(pool: Pool) {
    this.#pool = pool
    if (!guarded.has(pool)) guard(pool)
  }

  /** True if a statement would have to wait for a connection. */
  get isExhausted(): boolean {
    const { options, totalCount, idleCount = 0, waitingCount = 0 } = this.#pool
    if (options?.max === undefined || totalCount === undefined) return false
    return idleCount + options.max - totalCount - waitingCount <= 0
  }

  async connect(limitMs?: number): Promise<Client> {
    for (;;) {
      const client = await connectWithin(this.#pool, limitMs)
      if (!isSilentSince(client, this.#doubtedSince)) return client
      const reason = new Error('the connection may have died with another one')
      client.on('error', ignore)
      hangUp(client, reason)
      client.release?.(reason)
    }
  }

  doubt(since: number): void {
    this.#doubtedSince = Math.max(this.#doubtedSince, since)
  }
}

/**
 * Waits for a connection no longer than that; one that comes later goes back. A pool that is ended never tells those
 * who wait for it, so it is looked at.
 */
function connectWithin(pool: Pool, limitMs = Infinity): Promise<Client> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    let waits = true
    const give = (error: Error): void => {
      waits = false
      clearInterval(timer)
      reject(error)
    }
    const timer = setInterval(
      () => {
        if (pool.ending) give(poolEnded())
        else if (performance.now() - began >= limitMs) give(noConnection(limitMs))
      },
      Math.min(LOOK_MS, limitMs),
    )
    pool.connect().then(
      (client) => {
        clearInterval(timer)
        if (waits) resolve(client)
        else client.release?.()
      },
      (error: Error) => give(isPoolEnded(error) ? poolEnded(error) : error),
    )
  })
}

export function noConnection(ms: number): Error {
  const text = `no connection to the database was to be had within ${Math.round(ms)} ms`
  return fromTheDatabase(Object.assign(new Error(text), { code: 'CONNECT_TIMEOUT' }))
}

const guarded = sharedByCopies('guarded-pools', () => new WeakSet<object>())

/** An 'error' event without a listener ends the process. */
function guard(pool: Pool): void {
  guarded.add(pool)
  limitOpening(pool)
  // An idle client that loses its connection reports to the pool.
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', ignore)
  // A session that is ended as soon as it is ready tells so in the same packet, before whoever asked for it has it.
  pool.on?.('connect', (client: Client) => {
    heardFrom(client)
    client.on('error', ignore)
  })
}

/** What opens connections, and how. */
export type Openable = Pick<Pool, 'Client' | 'options'>

/**
 * A connection that is taken and never answered keeps a place of the pool for ever, and whoever waits for that place with it. The
 * pool's own limit holds for the wait as well, which is its owner's to bound: so each client gets one, unless the owner has said
 * how long, be it for ever (0).
 */
export function limitOpening(pool: Openable): void {
  const { Client, options } = pool
  if (!Client || !options || options.connectionTimeoutMillis !== undefined) return
  pool.Client = class extends Client {
    constructor(given: object) {
      super(given)
      this._connectionTimeoutMillis ||= OPENING_MS
    }
  }
}

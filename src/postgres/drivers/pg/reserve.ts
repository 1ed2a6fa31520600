/**
 * One connection beside the pool, opened when it is needed. Handlers may hold every connection of the pool, and
 * the heartbeats that keep their claims alive must not wait for them.
 */
import { within } from '../../../backoff.js'
import type { StatementOptions } from '../../driver.js'
import { isConnectionLoss, isReadOnly, isStalePlan, sqlState } from '../../errors.js'
import { ignore } from '../watch.js'
import { runOn } from './alone.js'
import { noConnection } from './checkout.js'
import { type Answer, type Client, dedicated, type Pool, type Statement } from './client.js'

const IDLE_MS = 10_000

export class Reserve {
  readonly #pool: Pool
  #client: Promise<Client> | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #idle: NodeJS.Timeout | undefined

  constructor(pool: Pool) {
    this.#pool = pool
  }

  get available(): boolean {
    return this.#pool.Client !== undefined && this.#pool.options !== undefined
  }

  /** One statement after the other: pg warns about a second one on a busy client. */
  query(statement: Statement, options: StatementOptions): Promise<Answer> {
    this.#waiting += 1
    const asked = performance.now()
    const answer = this.#queue
      .then(() => {
        // A heartbeat is of no use later; what held it up has hung for as long.
        if (options.urgent && isOver(options, asked)) throw noConnection(options.limitMs ?? 0)
        return this.#run(statement, options)
      })
      .finally(() => {
        this.#waiting -= 1
        if (this.#waiting === 0) this.#rest()
      })
    this.#queue = answer.catch(ignore)
    return answer
  }

  async #run(statement: Statement, options: StatementOptions): Promise<Answer> {
    clearTimeout(this.#idle)
    const opening = (this.#client ??= this.#open())
    const began = performance.now()
    try {
      const client = await connectedWithin(options, opening)
      client.ref?.()
      return await runOn(client, statement, leftOf(options, began))
    } catch (error) {
      // After a refusal by the server the connection is as good as new.
      const spoilt = isConnectionLoss(error) || isStalePlan(error) || isReadOnly(error)
      if (sqlState(error) === undefined || spoilt) this.#close(opening)
      throw error
    }
  }

  #open(): Promise<Client> {
    const opening = dedicated(this.#pool) as Promise<Client>
    const forget = (): void => {
      if (this.#client === opening) this.#client = undefined
    }
    opening.then((client) => client.on('error', forget) && client.on('end', forget), forget)
    return opening
  }

  /** While idle it does not keep the process alive, and is closed soon. */
  #rest(): void {
    const opening = this.#client
    if (opening === undefined) return
    opening.then((client) => this.#waiting === 0 && client.unref?.(), ignore)
    this.#idle = setTimeout(() => this.#close(opening), IDLE_MS)
    this.#idle.unref()
  }

  #close(opening: Promise<Client>): void {
    if (this.#client === opening) this.#client = undefined
    opening.then((client) => client.end?.().catch(ignore), ignore)
  }
}

function isOver({ limitMs = Infinity }: StatementOptions, since: number): boolean {
  return performance.now() - since >= limitMs
}

/** With what is left of its limit, and enough of it for a round trip. */
export function leftOf(options: StatementOptions, since: number): StatementOptions {
  const { limitMs } = options
  if (limitMs === undefined) return options
  return { ...options, limitMs: Math.max(limitMs / 2, limitMs - (performance.now() - since)) }
}

function connectedWithin(options: StatementOptions, opening: Promise<Client>): Promise<Client> {
  const { limitMs } = options
  return limitMs === undefined ? opening : within(limitMs, opening, () => noConnection(limitMs))
}

/** The library, through its public API alone: `createBox`, `fromPg`, `box.receive`, `box.handle`, `box.start`. */
import { batch, createBox, defineMessages, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { addEffect, addEffects, reserve } from './handlers.mjs'
import { chunks, inFlight, TYPE } from './messages.mjs'

/** Types only: the limit does not check messages against a schema either. */
const messages = defineMessages({ [TYPE]: unchecked() })

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export class Library {
  #url
  #schema
  #pool
  #box
  #handled = () => {}

  constructor(url, schema) {
    this.#url = url
    this.#schema = schema
  }

  /** A box with one consumer. `handler` is 'insert', 'batch' or 'update'. */
  async open({ handler = 'insert', ...options }) {
    const { concurrency = 4 } = options
    // One more than it has transactions, as `start` advises: for what happens besides.
    this.#pool = new pg.Pool({ connectionString: this.#url, max: concurrency + 1, idleTimeoutMillis: 0 })
    this.#box = createBox({ db: fromPg(this.#pool), messages, schema: this.#schema, logger: silent })
    this.#box.consumer('bench', { [TYPE]: this.#handlers[handler] }, options)
    await this.#box.migrate()
    // The limit is connected before it is measured, so the library is too.
    const clients = await Promise.all(Array.from({ length: concurrency + 1 }, () => this.#pool.connect()))
    for (const client of clients) client.release()
  }

  get #handlers() {
    return {
      insert: async ({ data, key }, { tx }) => {
        await addEffect(tx, data)
        this.#handled(data.orderId, key)
      },
      batch: batch(async (list, { tx }) => {
        await addEffects(
          tx,
          list.map(({ data }) => data),
        )
        for (const { data } of list) this.#handled(data.orderId)
      }),
      update: async ({ data }, { tx }) => {
        await reserve(tx, data)
        this.#handled(data.orderId)
      },
    }
  }

  /** Leaves what it has stored, for another to go on with. */
  leave() {
    return this.#pool.end()
  }

  async close() {
    await this.leave()
    const client = new pg.Client({ connectionString: this.#url })
    await client.connect()
    await client.query(`drop schema ${this.#schema} cascade`)
    await client.end()
  }

  get tables() {
    return ['message', 'work', 'lane', 'quarantine'].map((table) => `${this.#schema}.${table}`)
  }

  get leftQuery() {
    return `select count(*)::int n from ${this.#schema}.work`
  }

  /** So many keys have had messages before, and sleep. */
  addLanes(client, keys) {
    const text = `insert into ${this.#schema}.lane (consumer, key, due_at)
      select 'bench', 'key-' || i, 'infinity' from generate_series(0, $1::int - 1) i`
    return client.query(text, [keys])
  }

  async receive(list, { inFlight: many = 4, size = 1_000 } = {}) {
    await inFlight(many, chunks(list, size), async (part) => {
      const outcomes = await this.#box.receive(part)
      if (outcomes.some(({ status }) => status !== 'stored')) throw new Error('not all messages were stored')
    })
  }

  async handle(list, { inFlight: many, size }) {
    await inFlight(many, chunks(list, size), async (part) => {
      const outcomes = await this.#box.handle(part)
      if (outcomes.some(({ status }) => status !== 'handled')) throw new Error('not all messages were handled')
    })
  }

  /** From `start` until every message is settled. `handled` hears of each call of a handler. */
  async drain(total, left, handled) {
    const seen = new Set()
    const allSeen = new Promise((resolve) => {
      this.#handled = (id, key) => {
        handled?.(key)
        seen.add(id)
        if (seen.size === total) resolve()
      }
    })
    await this.#box.start()
    await allSeen
    while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 1))
    const ended = performance.now()
    await this.#box.stop()
    return ended
  }

  start(handled) {
    this.#handled = handled
    return this.#box.start()
  }

  stop() {
    return this.#box.stop()
  }
}

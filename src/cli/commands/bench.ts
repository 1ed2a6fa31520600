/** `oncebox bench`: what the user's own database can carry, in a schema of its own that is dropped at the end. */
import { randomBytes } from 'node:crypto'
import { createBox } from '../../box.js'
import type { Driver } from '../../postgres/driver.js'
import { command } from '../command.js'
import { EXIT } from '../exit.js'
import { isOutputClosed } from '../io.js'
import { integer } from '../option.js'
import { number, object, string } from '../shape.js'

/** As many as a command has connections. */
const CONNECTIONS = 4
const BATCH = 500

export const bench = command({
  noun: 'bench',
  summary: 'Measure your own database: commits, and the messages per second that a consumer can handle.',
  details: [
    'It makes a schema oncebox_bench_<random>, writes to it over four connections for about four times --seconds, and drops it at the end, also on Ctrl-C. A handler writes one row. Run it when nobody else needs the database, from where your workers run.',
  ],
  example: 'oncebox bench --seconds 5',
  options: {
    seconds: integer('How long each of the four parts takes, at least.', { least: 1, most: 600, fallback: 3 }),
  },
  connects: true,
  // Ctrl-C does not cut it short: the schema is dropped first, however long a commit takes.
  endless: true,
  output: object({
    ...{ database: string, commitMsMedian: number, commitMsP99: number, transactionsPerSecond: number },
    ...{ groupPerSecond: number, singlePerSecond: number },
  }),
  async run({ options, out, connect, signal }) {
    const { db, where } = await connect({ schema: 'any' })
    const { driver } = db
    const schema = `oncebox_bench_${randomBytes(4).toString('hex')}`
    const ms = options.seconds * 1_000
    out.note(`measures ${where}, in the schema ${schema}, which is dropped at the end`)
    await driver.query(`create schema ${schema}`, [])
    try {
      await driver.query(`create table ${schema}.probe (id bigserial primary key, at timestamptz default now())`, [])
      const write = `insert into ${schema}.probe default values`
      const alone = await commits(driver, write, { slots: 1, ms, signal })
      const together = await commits(driver, write, { slots: CONNECTIONS, ms, signal })
      const group = await handled(driver, { schema, write, messages: 100, ms, signal })
      const single = await handled(driver, { schema, write, messages: 1, ms, signal })
      if (signal.aborted) return isOutputClosed(signal) ? EXIT.ok : EXIT.interrupted
      const sorted = alone.sort((a, b) => a - b)
      const at = (part: number): number => round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0)
      const found = {
        ...{ database: where, commitMsMedian: at(0.5), commitMsP99: at(0.99) },
        transactionsPerSecond: round((together.length * 1_000) / ms),
        ...{ groupPerSecond: round(group), singlePerSecond: round(single) },
      }
      if (out.json) {
        out.document(found)
        return EXIT.ok
      }
      out.line(`a commit takes ${found.commitMsMedian} ms, and ${found.commitMsP99} ms at the 99th percentile`)
      out.line(`${found.transactionsPerSecond} transactions per second over ${CONNECTIONS} connections`)
      out.line(`${found.groupPerSecond} messages per second in groups, ${found.singlePerSecond} one by one`)
      return EXIT.ok
    } finally {
      await driver.query(`drop schema if exists ${schema} cascade`, [])
      out.note(`dropped ${schema}`)
    }
  },
})

interface Load {
  readonly slots: number
  readonly ms: number
  readonly signal: AbortSignal
}

async function commits(driver: Driver<unknown, unknown>, text: string, load: Load): Promise<number[]> {
  const { slots, ms, signal } = load
  const took: number[] = []
  const until = performance.now() + ms
  const slot = async (): Promise<void> => {
    while (performance.now() < until && !signal.aborted) {
      const began = performance.now()
      await driver.query(text, [])
      took.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: slots }, slot))
  return took
}

interface Measured {
  readonly schema: string
  readonly write: string
  /** In a group. */
  readonly messages: number
  readonly ms: number
  readonly signal: AbortSignal
}

/** Messages are stored and drained in turns; the time of the drains counts. */
async function handled(driver: Driver<unknown, unknown>, measured: Measured): Promise<number> {
  const { schema, write, messages, ms, signal } = measured
  const box = createBox({ db: driver, schema, telemetry: false })
  const options = { group: { messages }, concurrency: CONNECTIONS - 1 }
  box.consumer(`bench-${messages}`, { note: (_, { tx }) => driver.query(write, [], tx).then(() => undefined) }, options)
  const stop = (): void => void box.stop({ timeoutMs: 0 }).catch(() => undefined)
  signal.addEventListener('abort', stop)
  let [count, spent] = [0, 0]
  try {
    await box.migrate()
    while (spent < ms && !signal.aborted) {
      await box.receive(
        Array.from({ length: BATCH }, () => ({ id: `${messages}-${(count += 1)}`, type: 'note', data: {} })),
      )
      const began = performance.now()
      await box.drain()
      spent += performance.now() - began
    }
  } catch (error) {
    // What was stopped may say so.
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return (count * 1_000) / Math.max(spent, 1)
}

function round(value: number): number {
  return value >= 100 ? Math.round(value) : Math.round(value * 100) / 100
}

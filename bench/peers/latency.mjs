/**
 * One side of a contender, in a process of its own: what stores messages one at a time, or what runs their handler.
 *
 *   BENCH_URL=… node latency.mjs <contender> consume
 *   BENCH_URL=… node latency.mjs <contender> produce <messages per second> <seconds>
 *
 * It says `ready`, and a consumer runs until its input ends. The handler is one INSERT, with the time at which the message
 * was given to the contender, in µs.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'

const [, , name, side, rateText, secondsText] = process.argv
const url = process.env.BENCH_URL
const EFFECT = { name: 'effect', text: 'insert into effect (id, sent) values ($1, $2)' }

/** Each opens one side: `store` takes one message, and `stop` ends it. */
const CONTENDERS = {
  async oncebox() {
    const { createBox } = await import('../../dist/index.js')
    const { fromPg } = await import('../../dist/postgres/drivers/pg.js')
    const pool = new pg.Pool({ connectionString: url, max: 5 })
    const logger = { debug: () => {}, info: () => {}, warn: console.error, error: console.error }
    const box = createBox({ db: fromPg(pool), logger })
    if (side === 'consume') {
      box.consumer('orders', { order: ({ data }, { tx }) => tx.query({ ...EFFECT, values: [data.id, data.sent] }) })
      await box.migrate()
      await box.start()
    }
    return {
      store: ({ id, data }) => box.receive({ id, type: 'order', data }),
      async stop() {
        await box.stop()
        await pool.end()
      },
    }
  },

  /** Notifications by its trigger, one job at a time for each of 24 workers, without a local queue. */
  async 'graphile-worker'() {
    const { Logger, makeWorkerUtils, run } = await import('graphile-worker')
    const logger = new Logger(() => (level, message) => level === 'error' && console.error(message))
    const pgPool = new pg.Pool({ connectionString: url, max: side === 'consume' ? 26 : 5 })
    pgPool.on('error', () => {})
    pgPool.on('connect', (client) => client.on('error', () => {}))
    if (side === 'produce') {
      const utils = await makeWorkerUtils({ pgPool, logger })
      return { store: ({ data }) => utils.addJob('order', data), stop: () => pgPool.end() }
    }
    const order = (data, { query }) => query({ ...EFFECT, values: [data.id, data.sent] })
    const worker = { concurrentJobs: 24, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
    const runner = await run({ pgPool, logger, noHandleSignals: true, taskList: { order }, preset: { worker } })
    return { stop: () => runner.stop() }
  },

  /** Notifications, and batches in one transaction with their completion. */
  async 'pg-boss'() {
    const { PgBoss } = await import('pg-boss')
    const consumes = side === 'consume'
    const boss = new PgBoss({
      connectionString: url,
      max: consumes ? 10 : 5,
      useListenNotify: true,
      supervise: consumes,
    })
    boss.on('error', console.error)
    await boss.start()
    if (consumes) {
      await boss.createQueue('orders', { notify: true })
      const options = { transactional: true, batchSize: 20, localConcurrency: 4, pollingIntervalSeconds: 0.5 }
      const often = { notifyPollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
      await boss.work('orders', { ...options, ...often }, async (jobs, db) => {
        for (const { data } of jobs) await db.executeSql(EFFECT.text, [data.id, data.sent])
      })
    }
    return { store: ({ data }) => boss.send('orders', data), stop: () => boss.stop({ graceful: false }) }
  },
}

const nowUs = () => Math.round((performance.timeOrigin + performance.now()) * 1_000)

/** At its time each, whether the one before was answered or not: a sender does not wait because a server is slow. */
async function produce({ store }, rate, seconds) {
  const started = performance.now()
  const answers = []
  for (let n = 0; n < rate * seconds; n++) {
    const wait = started + (n * 1_000) / rate - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    const id = randomUUID()
    answers.push(store({ id, data: { id, sent: nowUs(), note: 'x'.repeat(200) } }))
  }
  await Promise.all(answers)
}

const contender = await CONTENDERS[name]()
process.stdout.write('ready\n')
if (side === 'produce') await produce(contender, Number(rateText), Number(secondsText))
else for await (const _ of process.stdin) void _
await contender.stop()
process.exit(0)

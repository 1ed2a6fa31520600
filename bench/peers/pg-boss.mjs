/**
 * pg-boss with `transactional`: jobs and their completion commit together. In batches one failure fails all of them; `small`
 * ones are as small as they can be without a pause between any two.
 */
import { PgBoss } from 'pg-boss'
import { chunks, inFlight } from '../messages.mjs'

const QUEUE = 'orders'
const SHAPES = {
  small: { batchSize: 2, localConcurrency: 24 },
  groups: { batchSize: 100, localConcurrency: 4 },
  many: { batchSize: 1_000, localConcurrency: 4 },
}
/** No pause while batches are full. */
const WORK = { transactional: true, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
/** Upkeep of its queues would run while others are measured. */
const QUIET = { supervise: false, schedule: false }

export async function open({ url, shape, work, workMany, handled }) {
  const boss = new PgBoss({ connectionString: url, max: 30, idleTimeoutMillis: 0, ...QUIET })
  boss.on('error', (error) => console.error(error.message))
  await boss.start()
  // A batch whose transaction lost a deadlock runs again at once.
  await boss.createQueue(QUEUE, { retryLimit: 1_000, retryDelay: 0 })
  const each = async (jobs, db) => {
    const client = { query: ({ text, values }) => db.executeSql(text, values) }
    for (const { data } of jobs) await work(client, data)
    handled(jobs.length)
  }
  const many = async (jobs, db) => {
    const client = { query: ({ text, values }) => db.executeSql(text, values) }
    await workMany(
      client,
      jobs.map(({ data }) => data),
    )
    handled(jobs.length)
  }
  return {
    tables: ['pgboss.job_common'],
    left: `exists (select from pgboss.job where state < 'completed')`,
    store: (messages, flying) =>
      inFlight(flying, chunks(messages, 1_000), (part) =>
        boss.insert(
          QUEUE,
          part.map(({ id, data }) => ({ id, data })),
        ),
      ),
    storeOne: ({ id, data }) => boss.send(QUEUE, data, { id }),
    start(_, handler) {
      const options = { ...WORK, ...SHAPES[shape] }
      // Batches that update the same rows would lose one deadlock after the other.
      if (handler === 'update' && shape === 'groups') options.localConcurrency = 1
      return boss.work(QUEUE, options, shape === 'many' ? many : each)
    },
    pause: () => boss.offWork(QUEUE),
    close: () => boss.stop({ graceful: false }),
  }
}

/**
 * pg-boss with `transactional`: jobs and their completion commit together. In batches one failure fails all of
 * them; `small` ones are as small as they can be without a pause between any two.
 */
import { PgBoss } from 'pg-boss'

const QUEUE = 'orders'
const SHAPES = {
  small: { batchSize: 2, localConcurrency: 24, burstWhenBatchFull: true },
  each: { batchSize: 100, localConcurrency: 4, burstWhenBatchFull: true },
  many: { batchSize: 1_000, localConcurrency: 4, burstWhenBatchFull: true },
}

export async function open({ url, shape, sql, handled }) {
  const boss = new PgBoss({ connectionString: url, max: 30 })
  boss.on('error', console.error)
  await boss.start()
  await boss.createQueue(QUEUE)
  const each = async (jobs, db) => {
    for (const { data } of jobs) {
      await db.executeSql(sql.one, [data.orderId, data.sku, data.quantity])
      handled()
    }
  }
  const many = async (jobs, db) => {
    await db.executeSql(sql.many, [JSON.stringify(jobs.map(({ data }) => data))])
    handled(jobs.length)
  }
  return {
    async store(messages) {
      for (let at = 0; at < messages.length; at += 1_000) await boss.insert(QUEUE, messages.slice(at, at + 1_000))
    },
    start: () =>
      boss.work(
        QUEUE,
        { transactional: true, pollingIntervalSeconds: 0.5, ...SHAPES[shape] },
        shape === 'many' ? many : each,
      ),
    stop: () => boss.stop({ graceful: false }),
  }
}

/**
 * graphile-worker with its local queue and batched completion, 24 jobs at a time. A job's own writes and its completion
 * are two transactions: a crash between them runs the job again.
 */
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'

const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message)
})

export async function open({ url, sql, handled }) {
  const pgPool = new pg.Pool({ connectionString: url, max: 26 })
  for (const event of ['error', 'connect']) pgPool.on(event, (it) => event === 'connect' && it.on('error', () => {}))
  const utils = await makeWorkerUtils({ pgPool, logger })
  await utils.migrate()
  let runner
  return {
    async store(messages) {
      for (let at = 0; at < messages.length; at += 1_000) {
        const part = messages.slice(at, at + 1_000)
        await utils.addJobs(part.map(({ id, data }) => ({ identifier: 'order', payload: data, jobKey: id })))
      }
    },
    async start() {
      const worker = {
        concurrentJobs: 24,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      }
      const order = async (data, { query }) => {
        await query({ name: 'effect', text: sql.one, values: [data.orderId, data.sku, data.quantity] })
        handled()
      }
      runner = await run({ pgPool, logger, noHandleSignals: true, taskList: { order }, preset: { worker } })
    },
    async stop() {
      await runner.stop()
      await utils.release()
      await pgPool.end()
    },
  }
}

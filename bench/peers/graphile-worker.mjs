/**
 * graphile-worker as its page on performance advises for many short jobs: a local queue, completions in batches, 24 jobs at a
 * time. A job's own writes and its completion are two transactions: a crash between them runs the job again.
 */
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { chunks, inFlight } from '../messages.mjs'

const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message)
})
const worker = { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }

export async function open({ url, work, handled }) {
  const pgPool = new pg.Pool({ connectionString: url, max: 26, idleTimeoutMillis: 0 })
  for (const event of ['error', 'connect']) pgPool.on(event, (it) => event === 'connect' && it.on('error', () => {}))
  const utils = await makeWorkerUtils({ pgPool, logger })
  await utils.migrate()
  const order = async (data, { query }) => {
    await work({ query }, data)
    handled()
  }
  let runner
  return {
    tables: ['graphile_worker._private_jobs'],
    left: 'exists (select from graphile_worker._private_jobs)',
    store: (messages, many) =>
      inFlight(many, chunks(messages, 1_000), (part) =>
        utils.addJobs(part.map(({ id, data }) => ({ identifier: 'order', payload: data, jobKey: id }))),
      ),
    storeOne: ({ id, data }) => utils.addJob('order', data, { jobKey: id }),
    async start() {
      runner = await run({ pgPool, logger, noHandleSignals: true, taskList: { order }, preset: { worker } })
    },
    pause: () => runner.stop(),
    async close() {
      await utils.release()
      await pgPool.end()
    },
  }
}

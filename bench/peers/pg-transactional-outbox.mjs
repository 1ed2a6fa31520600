/** pg-transactional-outbox's inbox, polled: one transaction for each message, 100 fetched at a time. */
import pg from 'pg'
import outbox from 'pg-transactional-outbox'

const { DatabaseSetup, getDisabledLogger, initializeMessageStorage, initializePollingMessageListener } = outbox
const settings = {
  dbSchema: 'public',
  dbTable: 'inbox',
  nextMessagesFunctionName: 'next_inbox_messages',
  nextMessagesBatchSize: 100,
  nextMessagesLockInMs: 60_000,
  nextMessagesPollingIntervalInMs: 10,
  enableMaxAttemptsProtection: true,
  enablePoisonousMessageProtection: true,
}

export async function open({ url, work, handled }) {
  const { username } = new URL(url)
  const pool = new pg.Pool({ connectionString: url, max: 24 })
  const setup = {
    outboxOrInbox: 'inbox',
    database: new URL(url).pathname.slice(1),
    schema: settings.dbSchema,
    table: settings.dbTable,
    listenerRole: username,
    nextMessagesName: settings.nextMessagesFunctionName,
  }
  await pool.query(DatabaseSetup.dropAndCreateTable(setup))
  await pool.query(DatabaseSetup.createPollingFunction(setup))
  await pool.query(DatabaseSetup.setupPollingIndexes(setup))
  const logger = getDisabledLogger()
  const config = {
    outboxOrInbox: 'inbox',
    dbListenerConfig: { connectionString: url },
    dbHandlerConfig: { connectionString: url, max: 24 },
    settings,
  }
  const save = initializeMessageStorage(config, logger)
  let shutdown
  return {
    tables: ['public.inbox'],
    left: 'exists (select from public.inbox where processed_at is null)',
    /** It stores one message at a time; many are under way at once. */
    async store(messages) {
      const rest = [...messages]
      const storing = Array.from({ length: 24 }, async () => {
        const client = await pool.connect()
        for (let one = rest.pop(); one; one = rest.pop()) {
          const { id, data } = one
          await save(
            {
              id,
              aggregateType: 'order',
              aggregateId: data.orderId,
              messageType: 'placed',
              payload: data,
              concurrency: 'parallel',
            },
            client,
          )
        }
        client.release()
      })
      await Promise.all(storing)
    },
    async start() {
      const handler = {
        aggregateType: 'order',
        messageType: 'placed',
        handle: async ({ payload }, client) => {
          await work(client, payload)
          handled()
        },
      }
      ;[shutdown] = initializePollingMessageListener(config, [handler], logger)
    },
    pause: () => shutdown(),
    close: () => pool.end(),
  }
}

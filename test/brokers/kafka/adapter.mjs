/** Kafka, for the tests that all brokers share. */
import { randomUUID } from 'node:crypto'
import kafkajs from 'kafkajs'
import { kafka } from 'oncebox/kafka'
import { start as startKafka } from '../../../tools/services/kafka.mjs'

export const name = 'kafka'
/** Kafka says nothing of earlier deliveries; a group that gets a second member takes a while. */
export const capabilities = { prefix: 'ce_', position: true, redelivered: false, independent: false, waitMs: 60_000 }

/** Says what it is: a mock shows less. */
export async function start() {
  const service = await startKafka()
  process.stderr.write(`tested against ${service.name} ${service.version}\n`)
  return service
}

/** Several, so that order and commits are per partition; few, so that a test can look at each. */
const PARTITIONS = 3
/** Of the topic, so that the box refuses a large body and not the broker. */
const MAX_BYTES = 16 * 1024 * 1024

/** A member that was killed is missed after two seconds, not thirty: its partitions wait for that. */
const CONSUMER = { sessionTimeout: 2_000, heartbeatInterval: 300, rebalanceTimeout: 10_000, maxWaitTimeInMs: 100 }
/** The mock takes its time, and would miss a member that waits for the others. */
const CONSUMER_OF_MOCK = { ...CONSUMER, sessionTimeout: 10_000 }

export async function create(url) {
  const mock = await isMock(url)
  const names = { topic: `orders-${randomUUID()}`, groupId: `billing-${randomUUID()}` }
  const settings = { url, mock, ...names, consumer: mock ? CONSUMER_OF_MOCK : CONSUMER }
  const configEntries = [{ name: 'max.message.bytes', value: String(MAX_BYTES) }]
  const topics = [{ topic: settings.topic, numPartitions: PARTITIONS, configEntries }]
  // The mock knows no such request, and makes topics as they are asked for.
  if (!mock) await withAdmin(url, (admin) => admin.createTopics({ topics, waitForLeaders: true, timeout: 30_000 }))
  return settings
}

export async function remove({ url, topic, mock }) {
  if (!mock) await withAdmin(url, (admin) => admin.deleteTopics({ topics: [topic] }))
}

export function source({ url, topic, groupId, consumer }, options = {}) {
  return kafka({ client: clientOf(url), groupId, topics: topic, consumer, ...options })
}

export function sink({ url, topic }, options = {}) {
  return kafka({ client: clientOf(url), topic, ...options })
}

/** Past the sink. There is no id beside the place in the log. */
export async function publish({ url, topic }, messages) {
  const producer = clientOf(url).producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    for (let at = 0; at < messages.length; at += 500) {
      const records = messages.slice(at, at + 500).map(({ headers, body, key }) => {
        const value = body === null ? null : Buffer.from(body)
        return key === undefined ? { headers, value } : { headers, value, key }
      })
      await producer.send({ topic, messages: records })
    }
  } finally {
    await producer.disconnect()
  }
}

/** What the group has not committed. */
export async function backlog(settings) {
  const committed = await committedOffsets(settings)
  const ends = await withAdmin(settings.url, (admin) => admin.fetchTopicOffsets(settings.topic))
  return ends.reduce((sum, { partition, offset }) => sum + Number(offset) - (committed.get(partition) ?? 0), 0)
}

/** By partition; those of which nothing was committed are missing. */
export async function committedOffsets({ url, topic, groupId }) {
  const [answer] = await withAdmin(url, (admin) => admin.fetchOffsets({ groupId, topics: [topic] }))
  const committed = answer.partitions.map(({ partition, offset }) => [partition, Number(offset)])
  return new Map(committed.filter(([, offset]) => offset >= 0))
}

export function clientOf(url) {
  const retry = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 }
  return new kafkajs.Kafka({ brokers: url.split(','), logLevel: kafkajs.logLevel.NOTHING, retry })
}

export async function withAdmin(url, ask) {
  const admin = clientOf(url).admin()
  await admin.connect()
  try {
    return await ask(admin)
  } finally {
    await admin.disconnect()
  }
}

async function isMock(url) {
  const { clusterId } = await withAdmin(url, (admin) => admin.describeCluster())
  return clusterId?.startsWith('mockCluster') ?? false
}

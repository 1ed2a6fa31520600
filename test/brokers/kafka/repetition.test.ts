/** What is sent again, by whom, and that nothing is called published that no broker has: kafkajs's own producer, over stand-ins for brokers. */
import { createRequire } from 'node:module'
import kafkajs, { type Message as KafkaMessage } from 'kafkajs'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Message, Sink } from 'oncebox'
import { kafka, type KafkaClient, type KafkaProducer } from 'oncebox/kafka'
import { waitUntil } from '../../support/wait.js'
import { gate } from '../recorder.js'
import { event } from './fixture.js'

const require = createRequire(import.meta.url)
const createProducer = require('kafkajs/src/producer') as (settings: object) => KafkaProducer
const errors = require('kafkajs/src/errors') as Record<string, new (about: unknown, more?: object) => Error>

const TOPIC = 'orders'
const NOT_LEADER = { type: 'NOT_LEADER_FOR_PARTITION', code: 6, retriable: true, message: 'not the leader' }

interface Produce {
  topicData: { topic: string; partitions: { partition: number; messages: KafkaMessage[] }[] }[]
}

interface Stored {
  readonly id: string
  readonly key: string | undefined
  readonly partition: number
}

interface Broker {
  readonly nodeId: string
  produce(request: Produce): Promise<object>
}

/** As many brokers as partitions; each leads one of them at first. Brokers are asked before they store anything. */
class Cluster {
  readonly retry = { retries: 0 }
  readonly targetTopics = new Set([TOPIC])
  readonly stored: Stored[] = []
  /** Of producers that were made. */
  readonly configs: Record<string, unknown>[] = []
  /** By partition. */
  readonly leaders: string[]
  /** How often a broker was asked to store something. */
  requests = 0
  readonly #brokers: Map<string, Broker>

  constructor(brokers: number, before: (nodeId: string, cluster: Cluster) => Promise<void> = async () => undefined) {
    this.leaders = Array.from({ length: brokers }, (_, n) => String(n))
    const brokerOf = (nodeId: string): Broker => ({
      nodeId,
      produce: async (request) => {
        this.requests++
        await before(nodeId, this)
        return this.#store(request)
      },
    })
    this.#brokers = new Map(this.leaders.map((nodeId) => [nodeId, brokerOf(nodeId)]))
  }

  #store({ topicData }: Produce): object {
    const topics = topicData.map(({ topic, partitions }) => ({
      topicName: topic,
      partitions: partitions.map(({ partition, messages }) => {
        for (const { headers, key } of messages) {
          this.stored.push({ id: String(headers!['ce_id']), key: key?.toString(), partition })
        }
        return { partition, errorCode: 0, baseOffset: '0' }
      }),
    }))
    return { topics }
  }

  ids(): Set<string> {
    return new Set(this.stored.map(({ id }) => id))
  }

  connected = false
  connect = async (): Promise<void> => void (this.connected = true)
  disconnect = async (): Promise<void> => void (this.connected = false)
  isConnected = (): boolean => this.connected
  removeBroker = (): void => undefined
  refreshMetadata = async (): Promise<void> => undefined
  refreshMetadataIfNecessary = async (): Promise<void> => undefined
  addMultipleTargetTopics = async (): Promise<void> => undefined
  findBroker = async ({ nodeId }: { nodeId: string }): Promise<Broker> => this.#brokers.get(nodeId)!
  findTopicPartitionMetadata = (): object[] => this.leaders.map((leader, partitionId) => ({ partitionId, leader }))
  findLeaderForPartitions(_: string, partitions: string[]): Record<string, number[]> {
    const led: Record<string, number[]> = {}
    for (const partition of partitions.map(Number)) (led[this.leaders[partition]!] ??= []).push(partition)
    return led
  }

  client(): KafkaClient {
    const kafkaOfNoOne = new kafkajs.Kafka({ brokers: ['127.0.0.1:1'], logLevel: kafkajs.logLevel.NOTHING })
    const logger = (): object => kafkaOfNoOne.logger()
    const producer = (config: object): KafkaProducer => {
      this.configs.push(config as Record<string, unknown>)
      return createProducer({ ...config, cluster: this, logger: logger() })
    }
    return { logger, producer, consumer: (config: object) => kafkaOfNoOne.consumer(config as never) } as KafkaClient
  }
}

function open(cluster: Cluster, options: object = {}): Sink {
  const own = kafka({ client: cluster.client(), topic: TOPIC, ...options })
  onTestFinished(() => own.close())
  return own
}

function closed(): Error {
  return new errors['KafkaJSConnectionClosedError']!('Closed connection', { host: 'x', port: 1 })
}

const events = (count: number, key?: (n: number) => string): Message[] =>
  Array.from({ length: count }, (_, n) => event(`e${n}`, key ? { key: key(n) } : {}))

/** However often the user lets kafkajs repeat a request. */
const OFTEN = { producer: { retry: { retries: 5, initialRetryTime: 1, maxRetryTime: 1 } } }

describe('what is called published is stored', () => {
  test('events without a key, when a broker closes its connection while the others answer', async () => {
    let closes = 1
    const cluster = new Cluster(3, async (nodeId) => {
      if (nodeId === '1' && closes-- > 0) throw closed()
    })
    const batch = events(100)
    expect(await open(cluster, OFTEN).publish(batch)).toEqual(batch.map(() => undefined))
    expect(cluster.ids()).toEqual(new Set(batch.map(({ id }) => id)))
  })

  test('events with keys, in order, when a partition moves to a broker that has answered', async () => {
    let answered = (): void => undefined
    const hasAnswered = new Promise<void>((resolve) => (answered = resolve))
    const cluster = new Cluster(2, async (nodeId, own) => {
      if (nodeId === '1') return setImmediate(answered) && undefined
      await hasAnswered
      own.leaders[0] = '1'
      throw new errors['KafkaJSProtocolError']!(NOT_LEADER)
    })
    const batch = events(40, (n) => `k${n % 8}`)
    expect(await open(cluster, OFTEN).publish(batch)).toEqual(batch.map(() => undefined))
    expect(new Set(cluster.stored.map(({ partition }) => partition))).toEqual(new Set([0, 1]))
    for (let k = 0; k < 8; k++) {
      const ids = cluster.stored.filter(({ key }) => key === `k${k}`).map(({ id }) => id)
      expect([...new Set(ids)]).toEqual(batch.filter(({ key }) => key === `k${k}`).map(({ id }) => id))
    }
  })
})

describe('a broker that goes on failing', () => {
  const failing = (): Cluster =>
    new Cluster(1, async () => {
      throw new errors['KafkaJSProtocolError']!(NOT_LEADER)
    })

  test('is asked a few times, by a producer that repeats nothing by itself, whatever its settings say', async () => {
    const cluster = failing()
    await expect(open(cluster, OFTEN).publish(events(2))).rejects.toThrow('not the leader')
    expect(cluster.requests).toBe(3)
    expect(cluster.configs.map(({ retry }) => retry)).toEqual(
      cluster.configs.map(() => ({ ...OFTEN.producer.retry, retries: 0 })),
    )
  })

  test('is not asked again for a relay that has given up', async () => {
    const over = new AbortController()
    const cluster = new Cluster(1, async () => {
      over.abort(new Error('over'))
      throw closed()
    })
    const limits = { timeoutMs: 60_000, signal: over.signal }
    await expect(open(cluster, OFTEN).publish(events(2), limits)).rejects.toThrow()
    expect(cluster.requests).toBe(1)
  })
})

test('a connection that kafkajs opens anew for a request that nobody waits for is ended', async () => {
  const { passed, open: close } = gate()
  const cluster = new Cluster(1, async () => {
    await passed
    throw closed()
  })
  const connect = vi.spyOn(cluster, 'connect')
  const own = open(cluster, { timeoutMs: 20 })
  await expect(own.publish(events(1))).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  await waitUntil(() => !cluster.connected)
  close()
  await waitUntil(() => connect.mock.calls.length === 2)
  await waitUntil(() => !cluster.connected)
})

test('idempotent is refused with kafkajs, which can only have it with its own repetition', () => {
  const client = new Cluster(1).client()
  expect(() => kafka({ client, topic: TOPIC, idempotent: true })).toThrow(/idempotent.*kafkajs/)
  expect(kafka({ client, topic: TOPIC, idempotent: false })).toBeDefined()
})

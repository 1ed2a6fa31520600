/** A member of a group, of kafkajs's shape, that is told what it is assigned and what it has fetched. No broker is needed for it. */
import { createRequire } from 'node:module'
import type { KafkaAdmin } from '../../../src/brokers/kafka/client.js'
import type { KafkaBatch, KafkaClient, KafkaMessage } from 'oncebox/kafka'

const require = createRequire(import.meta.url)

interface Assigned {
  topic: string
  partitions: number[]
}

/** kafkajs's own: it decides what a pause outlives. */
interface SubscriptionState {
  assign(to: Assigned[]): void
  pause(of: Assigned[]): void
  resume(of: Assigned[]): void
  paused(): Assigned[]
  isPaused(topic: string, partition: number): boolean
}
const State = require('kafkajs/src/consumer/subscriptionState') as new () => SubscriptionState

export const TOPIC = 'orders'

type Rebalance = (what: { code: number }, of: { topic: string; partition: number }[]) => Promise<void>
type Commit = (next: string) => Promise<void>

export class Member {
  /** Partition and offset of each commit, in order. */
  readonly commits: [partition: number, offset: string][] = []
  readonly #state = new State()
  #eachBatch: (payload: KafkaBatch) => Promise<void> = async () => undefined
  #joined: (event: object) => void = () => undefined
  #crashed: (event: object) => void = () => undefined
  #rebalance: Rebalance = async () => undefined

  /** What it is assigned now; of kafkajs, all that it has. */
  join(...partitions: number[]): void {
    this.#state.assign([{ topic: TOPIC, partitions }])
    this.#joined({ payload: { memberAssignment: { [TOPIC]: partitions } } })
  }

  /** As Confluent's client tells it: the one, and then the other. */
  async takeAway(...partitions: number[]): Promise<void> {
    await this.#rebalance({ code: -174 }, of(partitions))
  }

  async assign(...partitions: number[]): Promise<void> {
    this.#state.assign([{ topic: TOPIC, partitions }])
    await this.#rebalance({ code: -175 }, of(partitions))
  }

  /** The client gives up. */
  crash(error: Error): void {
    this.#crashed({ payload: { error } })
  }

  isPaused(partition: number): boolean {
    return this.#state.isPaused(TOPIC, partition)
  }

  /** Messages from an offset on. Resolves, or rejects, when the client has its batch back. */
  fetched(partition: number, first: number, count = 1, commit: Commit = async () => undefined): Promise<void> {
    const messages = Array.from({ length: count }, (_, n): KafkaMessage => messageAt(first + n))
    const of = [{ topic: TOPIC, partitions: [partition] }]
    const payload = {
      batch: { topic: TOPIC, partition, messages, lastOffset: () => messages.at(-1)!.offset },
      resolveOffset: () => undefined,
      heartbeat: async () => undefined,
      isRunning: () => true,
      isStale: () => false,
      pause: () => {
        this.#state.pause(of)
        return () => this.#state.resume(of)
      },
      commitOffsetsIfNecessary: async ({ topics }: { topics: { partitions: { offset: string }[] }[] }) => {
        const { offset } = topics[0]!.partitions[0]!
        await commit(offset)
        this.commits.push([partition, offset])
      },
    }
    return this.#eachBatch(payload)
  }

  /** Assigned these at its start. */
  client(partitions: number[], admin: Partial<KafkaAdmin> = {}): KafkaClient {
    const events = { CRASH: 'crash', GROUP_JOIN: 'join' }
    const consumer = {
      events,
      on: (event: string, listener: (event: object) => void) => {
        if (event === events.GROUP_JOIN) this.#joined = listener
        if (event === events.CRASH) this.#crashed = listener
      },
      pause: (of: Assigned[]) => this.#state.pause(of),
      resume: (of: Assigned[]) => this.#state.resume(of),
      paused: () => this.#state.paused(),
      connect: async () => undefined,
      disconnect: async () => undefined,
      subscribe: async () => undefined,
      run: async ({ eachBatch }: { eachBatch: (payload: KafkaBatch) => Promise<void> }) => {
        this.#eachBatch = eachBatch
        this.join(...partitions)
      },
      commitOffsets: async (offsets: { partition: number; offset: string }[]) => {
        for (const { partition, offset } of offsets) this.commits.push([partition, offset])
      },
    }
    const own = {
      connect: async () => undefined,
      disconnect: async () => undefined,
      fetchOffsets: async () => [],
      fetchTopicOffsets: async () => [],
      ...admin,
    }
    const unused = (): never => {
      throw new Error('not here')
    }
    return {
      logger: unused,
      producer: unused,
      consumer: (config: { rebalance_cb?: Rebalance }) => {
        if (config.rebalance_cb) this.#rebalance = config.rebalance_cb
        return consumer
      },
      admin: () => own as KafkaAdmin,
    } as unknown as KafkaClient
  }

  /** In the shape of Confluent's: it has no logger. */
  confluent(...given: Parameters<Member['client']>): KafkaClient {
    const { logger: _, ...client } = this.client(...given) as KafkaClient & { logger: unknown }
    return client
  }
}

function of(partitions: readonly number[]): { topic: string; partition: number }[] {
  return partitions.map((partition) => ({ topic: TOPIC, partition }))
}

function messageAt(offset: number): KafkaMessage {
  return { key: null, value: Buffer.from('{}'), timestamp: '0', offset: String(offset), headers: {} }
}

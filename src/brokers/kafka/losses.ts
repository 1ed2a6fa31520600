/**
 * What a topic has lost before it was read, and what in its settings will lose more.
 *
 * The client goes on in silence where the offset of its group is gone from the log: from the beginning of what is left, or
 * from its end. Before a member joins, the offsets of its group are compared with what the log still has; later a
 * member that finds other messages than it expected asks again.
 */
import { within } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { DAY_MS } from '../../figures.js'
import type { Report } from '../run.js'
import type { Warn } from '../source.js'
import type { KafkaAdmin } from './client.js'
import type { ResolvedSource } from './options.js'

export interface Position {
  readonly topic: string
  readonly partition: number
  readonly offset: string
}

export interface Losses {
  /** Before a member joins. Never rejects: a broker may not allow these questions. */
  look(): Promise<void>
  /** A member expected the one, and was given the other. */
  skipped(expected: Position, found: string): void
}

interface Told {
  readonly report: Report
  readonly warn: Warn
}

/** The first to last offset of a partition, the last one excluded. */
interface Log {
  readonly low: bigint
  readonly high: bigint
}

const ANSWER_MS = 5_000
/** A topic of transactions, or a compacted one, has gaps everywhere. */
const ASK_EVERY_MS = 30_000
/** `ConfigResourceTypes.TOPIC` of the protocol. */
const TOPIC = 2

export function createLosses(options: ResolvedSource, { report, warn }: Told): Losses {
  const { client, groupId, fromBeginning } = options
  /** Positions of which it is known that they are gone. */
  const told = new Set<string>()
  /** Gaps to ask about, the first of each partition. */
  const gaps = new Map<string, { readonly expected: Position; readonly found: string }>()
  let askedAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  const tell = ({ topic, partition, offset }: Position, what: string): void => {
    const place = `${topic}:${partition}:${offset}`
    if (told.has(place)) return
    told.add(place)
    report(new OnceboxError('NOT_FOUND', `partition ${partition} of ${topic}, offset ${offset}: ${what}`))
    // The broker is there; it is the messages that are not.
    report()
  }

  const compare = (at: Position, { low, high }: Log): void => {
    const offset = BigInt(at.offset)
    if (offset < low) {
      const lost = fromBeginning ? low - offset : high - offset
      const how = fromBeginning ? '' : ', or are passed over for fromBeginning is false'
      tell(at, `${lost} messages were deleted before they were read${how}; raise retention.ms of the topic`)
    }
    if (offset > high) {
      const advice = 'give it another source, or its records are taken for copies of those that had their offsets'
      tell(at, `the log ends at ${high}, so the topic was made anew, or cut: ${advice}`)
    }
  }

  const ask = async (question: (admin: KafkaAdmin) => Promise<void>): Promise<void> => {
    const admin = client.admin?.()
    if (!admin) return
    try {
      await within(
        ANSWER_MS,
        admin.connect().then(() => question(admin)),
        () => new Error('no answer'),
      )
    } catch {
      // It may not be allowed, or the broker is away: who joins will hear of that.
    } finally {
      await admin.disconnect().catch(() => undefined)
    }
  }

  const logsOf = async (admin: KafkaAdmin, topic: string): Promise<Map<number, Log>> => {
    const offsets = await admin.fetchTopicOffsets(topic)
    return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]))
  }

  const askAboutGaps = (): Promise<void> => {
    timer = undefined
    askedAt = performance.now()
    const found = [...gaps.values()]
    gaps.clear()
    return ask(async (admin) => {
      for (const gap of found) {
        const log = (await logsOf(admin, gap.expected.topic)).get(gap.expected.partition)
        // What lies between the two, and was not deleted, is marks of transactions, or was compacted.
        if (log && BigInt(gap.expected.offset) < log.low) compare(gap.expected, { ...log, high: BigInt(gap.found) })
      }
    })
  }

  return {
    look: () =>
      ask(async (admin) => {
        const topics = await topicsOf(admin, options.topics)
        for (const { topic, partitions } of await admin.fetchOffsets({ groupId, topics })) {
          const logs = await logsOf(admin, topic)
          for (const { partition, offset } of partitions) {
            const log = logs.get(partition)
            // Below zero: nothing was committed yet.
            if (log && BigInt(offset) >= 0n) compare({ topic, partition, offset }, log)
          }
        }
        for (const line of await warningsOf(admin, topics)) warn(line)
      }),
    skipped(expected, found) {
      const name = `${expected.topic}:${expected.partition}`
      if (!gaps.has(name)) gaps.set(name, { expected, found })
      timer ??= setTimeout(() => void askAboutGaps(), askedAt + ASK_EVERY_MS - performance.now()).unref()
    },
  }
}

async function topicsOf(admin: KafkaAdmin, wanted: ResolvedSource['topics']): Promise<string[]> {
  if (wanted.every((topic) => typeof topic === 'string')) return [...wanted]
  const there = await admin.listTopics()
  return there.filter((name) => wanted.some((topic) => (typeof topic === 'string' ? topic === name : topic.test(name))))
}

/** A line for each topic that loses messages by its settings. */
async function warningsOf(admin: KafkaAdmin, topics: readonly string[]): Promise<string[]> {
  if (!admin.describeConfigs || topics.length === 0) return []
  const resources = topics.map((name) => ({ type: TOPIC, name, configNames: ['cleanup.policy', 'retention.ms'] }))
  const described = await admin.describeConfigs({ resources, includeSynonyms: false })
  return described.resources.flatMap(({ resourceName: topic, configEntries }) => {
    const settings = new Map(configEntries.map(({ configName, configValue }) => [configName, configValue]))
    const lines: string[] = []
    const policy = settings.get('cleanup.policy') ?? ''
    const retentionMs = Number(settings.get('retention.ms') ?? -1)
    if (policy.includes('compact')) {
      lines.push(`topic ${topic} is compacted: of one key only the last message is kept; set cleanup.policy to delete`)
    }
    if (policy.includes('delete') && retentionMs >= 0 && retentionMs < DAY_MS) {
      const minutes = Math.round(retentionMs / 60_000)
      lines.push(
        `topic ${topic} keeps messages for ${minutes} minutes, and a longer outage loses some; raise retention.ms`,
      )
    }
    return lines
  })
}

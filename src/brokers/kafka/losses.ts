/**
 * What a topic has lost before it was read, and what in its settings will lose more.
 *
 * The client goes on in silence where the offset of its group is gone from the log: from the beginning of what is left, or
 * from its end. When a member is assigned partitions, and before it commits anything, the offsets of its group are compared
 * with what the log still has; later a member that finds other messages than it expected asks again.
 *
 * A group that begins at the end of the log has that place in the memory of its members alone, until they have committed
 * something. The next reader of a partition would begin at the end of that time. So it is committed here, before anything is
 * read: by the one member that has the partition, so that no offset that another one has committed is overwritten.
 */
import { sleep, within } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { DAY_MS } from '../../figures.js'
import type { Report } from '../run.js'
import type { Warn } from '../source.js'
import { nameOf, type Assigned, type KafkaAdmin, type Position } from './client.js'
import { hasGroupMovedOn } from './errors.js'
import type { ResolvedSource } from './options.js'

/** None of it rejects: a broker may not allow these questions. */
export interface Losses {
  /** Before a member joins: warns of settings. */
  foresee(): Promise<void>
  /**
   * When partitions are assigned: what is gone is told, and where there is no offset and the end counts, it is committed.
   * Answers where the group is, of those of which that is known.
   */
  look(assigned: readonly Assigned[], commit: (positions: Position[]) => Promise<void>): Promise<readonly Position[]>
  /** So far this member has committed. */
  reached(position: Position): void
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
const CLOSE_MS = 1_000
/** A topic of transactions, or a compacted one, has gaps everywhere. */
const ASK_EVERY_MS = 30_000
/** `ConfigResourceTypes.TOPIC` of the protocol. */
const TOPIC = 2
/** Where nothing is committed kafkajs says so, or the number of one of the ends; Confluent's client leaves it out. */
const NONE = '-1'
const ANEW = 'give it another source, or its records are taken for copies of those that had their offsets'

const NOT_BEGUN =
  'where the group begins could not be committed; until something is, a restart may pass over messages: set fromBeginning'

export function createLosses(options: ResolvedSource, { report, warn }: Told): Losses {
  const { client, groupId, fromBeginning } = options
  /** Positions of which it is known that they are gone. */
  const told = new Set<string>()
  /** How far each partition was committed from here. */
  const reached = new Map<string, Position>()
  /** Gaps to ask about, the first of each partition. */
  const gaps = new Map<string, { readonly expected: Position; readonly found: string }>()
  let askedAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  const tell = (at: Position, what: string): void => {
    const { topic, partition, offset } = at
    const place = `${nameOf(at)}:${offset}`
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
      tell(at, `the log ends at ${high}, so the topic was made anew, or cut: ${ANEW}`)
    }
  }

  /** With a topic the offsets of its groups are deleted. We know what it was. */
  const compareReached = (at: Position, log: Log): void => {
    compare(at, log)
    tell(at, `the group has lost this offset, so the topic was made anew: ${ANEW}`)
  }

  /** Answers what was in the way, if anything. */
  const ask = async (question: (admin: KafkaAdmin) => Promise<void>): Promise<unknown> => {
    const admin = client.admin?.()
    if (!admin) return new Error('the client has no admin()')
    try {
      await within(
        ANSWER_MS,
        admin.connect().then(() => question(admin)),
        () => new Error('no answer'),
      )
      return undefined
    } catch (error) {
      // It may not be allowed, or the broker is away: who joins will hear of that.
      return error
    } finally {
      await sleep(
        CLOSE_MS,
        admin.disconnect().catch(() => undefined),
      )
    }
  }

  const logsOf = async (admin: KafkaAdmin, topic: string): Promise<Map<number, Log>> => {
    const offsets = await admin.fetchTopicOffsets(topic)
    return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]))
  }

  /** Answers where the group is, and where it has to be told to begin. */
  const compareAll = async (admin: KafkaAdmin, assigned: readonly Assigned[]): Promise<[Position[], Position[]]> => {
    const topics = [...new Set(assigned.map(({ topic }) => topic))]
    const answers = await admin.fetchOffsets({ groupId, topics })
    const places: Position[] = []
    const begins: Position[] = []
    for (const topic of topics) {
      const logs = await logsOf(admin, topic)
      for (const at of reached.values()) {
        if (at.topic === topic && !logs.has(at.partition)) tell(at, `it is gone, so the topic was made anew: ${ANEW}`)
      }
      const committed = answers.flatMap((answer) => (answer.topic === topic ? answer.partitions : []))
      const offsets = new Map(committed.map(({ partition, offset }) => [partition, offset]))
      for (const partition of assigned.flatMap((one) => (one.topic === topic ? one.partitions : []))) {
        const log = logs.get(partition)
        if (!log) continue
        const at = { topic, partition, offset: offsets.get(partition) ?? NONE }
        if (compareOne(at, log)) places.push(at)
        else if (!fromBeginning) begins.push({ ...at, offset: String(log.high) })
      }
    }
    return [places, begins]
  }

  /** Answers whether the log still has it. */
  const compareOne = (at: Position, log: Log): boolean => {
    const before = reached.get(nameOf(at))
    const offset = BigInt(at.offset)
    if (offset >= 0n) compare(at, log)
    else if (before) compareReached(before, log)
    return offset >= log.low && offset <= log.high
  }

  const askAboutGaps = (): Promise<unknown> => {
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
    async foresee() {
      await ask(async (admin) => {
        for (const line of await warningsOf(admin, await topicsOf(admin, options.topics))) warn(line)
      })
    },
    async look(assigned, commit) {
      const positions: Position[] = []
      if (assigned.length === 0) return positions
      const problem = await ask(async (admin) => {
        const [places, begins] = await compareAll(admin, assigned)
        positions.push(...places)
        if (begins.length > 0) await commit(begins)
        positions.push(...begins)
      })
      if (problem !== undefined && !fromBeginning && !hasGroupMovedOn(problem)) warn(NOT_BEGUN)
      return positions
    },
    reached(position) {
      reached.set(nameOf(position), position)
    },
    skipped(expected, found) {
      if (BigInt(found) < BigInt(expected.offset)) {
        return tell(expected, `the next message has the offset ${found}, so the topic was made anew, or cut: ${ANEW}`)
      }
      const name = nameOf(expected)
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

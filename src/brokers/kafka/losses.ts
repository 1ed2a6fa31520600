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
import type { Reports } from '../run.js'
import type { Warn } from '../source.js'
import { ask, logsOf } from './ask.js'
import { isKafkajs, nameOf, type Assigned, type KafkaAdmin, type Position } from './client.js'
import { hasGroupMovedOn } from './errors.js'
import { Missing } from './missing.js'
import type { ResolvedSource } from './options.js'
import { settingsProblems } from './topic-settings.js'

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

interface Told extends Pick<Reports, 'tellPassing'> {
  readonly warn: Warn
}

/** A topic of transactions, or a compacted one, has gaps everywhere. */
const ASK_EVERY_MS = 30_000
/** Where nothing is committed kafkajs says so, or the number of one of the ends; Confluent's client leaves it out. */
const NONE = '-1'

const NOT_BEGUN =
  'where the group begins could not be committed; until something is, a restart may pass over messages: set fromBeginning'

export function createLosses(options: ResolvedSource, { tellPassing, warn }: Told): Losses {
  const { client, fromBeginning } = options
  const missing = new Missing(tellPassing, fromBeginning)
  const askAboutGap = createGaps(options, missing)
  return {
    async foresee() {
      await ask(client, async (admin) => {
        for (const line of await settingsProblems(admin, options.topics)) warn(line)
      })
    },
    async look(assigned, commit) {
      const positions: Position[] = []
      if (assigned.length === 0) return positions
      const problem = await ask(client, async (admin, isAwaited) => {
        const { places, begins, isUnsaid } = await compareAll(admin, assigned, options, missing)
        // Who does not wait reads already, from an end that was before this one: what is between them may not be done with.
        if (!isAwaited()) return
        positions.push(...places)
        if (begins.length > 0) await commit(begins)
        positions.push(...begins)
        for (const position of positions) missing.reached(position)
        if (isUnsaid) throw new Error('the client did not say of all partitions where the group is')
      })
      if (problem !== undefined && !fromBeginning && !hasGroupMovedOn(problem)) warn(NOT_BEGUN)
      return positions
    },
    reached: (position) => missing.reached(position),
    skipped(expected, found) {
      if (BigInt(found) < BigInt(expected.offset)) missing.wentBack(expected, found)
      else askAboutGap(expected, found)
    },
  }
}

/** Where the group is, and where it has to be told to begin. */
interface Compared {
  readonly places: Position[]
  readonly begins: Position[]
  /** Of some partitions nothing is known. */
  readonly isUnsaid: boolean
}

async function compareAll(
  admin: KafkaAdmin,
  assigned: readonly Assigned[],
  { client, groupId, fromBeginning }: ResolvedSource,
  missing: Missing,
): Promise<Compared> {
  const topics = [...new Set(assigned.map(({ topic }) => topic))]
  const answers = await admin.fetchOffsets({ groupId, topics })
  const ofAll = await Promise.all(topics.map(async (topic) => ({ topic, logs: await logsOf(admin, topic) })))
  const places: Position[] = []
  const begins: Position[] = []
  let isUnsaid = false
  for (const { topic, logs } of ofAll) {
    missing.comparePartitions(topic, logs)
    const committed = answers.flatMap((answer) => (answer.topic === topic ? answer.partitions : []))
    const offsets = new Map(committed.map(({ partition, offset }) => [partition, offset]))
    for (const partition of assigned.flatMap((one) => (one.topic === topic ? one.partitions : []))) {
      const log = logs.get(partition)
      if (!log) continue
      // kafkajs asks for the partitions that it knows of: of several topics that it looks up at a time, it may not know one.
      if (!offsets.has(partition) && isKafkajs(client)) {
        isUnsaid = true
        continue
      }
      const at = { topic, partition, offset: offsets.get(partition) ?? NONE }
      if (missing.compare(at, log)) places.push(at)
      else if (!fromBeginning) begins.push({ ...at, offset: String(log.high) })
    }
  }
  return { places, begins, isUnsaid }
}

/** Gaps are asked about together, and not too often: the first of each partition. */
function createGaps({ client }: ResolvedSource, missing: Missing): (expected: Position, found: string) => void {
  const gaps = new Map<string, { readonly expected: Position; readonly found: string }>()
  let askedAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  const askAboutAll = async (): Promise<void> => {
    timer = undefined
    askedAt = performance.now()
    const all = [...gaps.values()]
    gaps.clear()
    await ask(client, async (admin, isAwaited) => {
      for (const { expected, found } of all) {
        if (!isAwaited()) return
        const log = (await logsOf(admin, expected.topic)).get(expected.partition)
        if (log) missing.compareGap(expected, found, log)
      }
    })
  }

  return (expected, found) => {
    const name = nameOf(expected)
    if (!gaps.has(name)) gaps.set(name, { expected, found })
    timer ??= setTimeout(() => void askAboutAll(), askedAt + ASK_EVERY_MS - performance.now()).unref()
  }
}

/**
 * Apart: a sink that throws for a whole batch may be down, or may have met the one event that it cannot take. Once that is
 * likely the batch is published shard by shard, and a shard that is thrown back event by event, so that the event is
 * found and blamed, and the others go through.
 *
 * Nobody is blamed for a destination that is down. What is thrown back alone is blamed only if there is proof that the
 * destination is up: others were accepted in the same round, or in other shards since the last throw; or if it has
 * failed before, for then there may be no other any more, unless an adapter says that it is the destination. And a row
 * of throws is the destination going away.
 */
import { isOfTheDestination, shuffle } from '../brokers/send.js'
import type { Sink } from '../brokers/sink.js'
import {
  blame,
  DestinationDown,
  noVerdicts,
  publish,
  type OutgoingEvent,
  type PublishOptions,
  type Verdicts,
} from './publish.js'

/** What a relay remembers of the throws of its sink. */
export interface Care {
  /** Whether events are published apart for now. */
  readonly apart: boolean
  /** Whether other shards were published since one of these was thrown back. */
  isProven(shards: readonly number[]): boolean
  threw(shards: readonly number[]): void
  published(shards: readonly number[]): void
  /** Some were blamed, and nothing was published: the proof is used up. */
  blamed(shards: readonly number[]): void
}

/** So many throws in a row, and events are published apart though nothing was accepted in between. */
const THROWS = 6
const APART_MS = 600_000
/** So many events thrown back in a row, and the destination is taken to be down for the rest of the round. */
const IN_A_ROW = 4
/** But where they come back at once, many more are tried: among many that are thrown back the others need their turn. */
const MOST_IN_A_ROW = 64
const AT_ONCE_MS = 1_000

export function createCare(): Care {
  let throwsInARow = 0
  let apartUntil = 0
  /** Shards that were thrown back, and whether others were published since. */
  const thrown = new Map<number, boolean>()
  const isProven: Care['isProven'] = (shards) => shards.some((shard) => thrown.get(shard))
  return {
    get apart() {
      return performance.now() < apartUntil
    },
    isProven,
    threw(shards) {
      throwsInARow += 1
      if (isProven(shards) || throwsInARow >= THROWS) apartUntil = performance.now() + APART_MS
      for (const shard of shards) if (!thrown.has(shard)) thrown.set(shard, false)
    },
    published(shards) {
      throwsInARow = 0
      for (const shard of shards) thrown.delete(shard)
      for (const shard of thrown.keys()) thrown.set(shard, true)
    },
    blamed(shards) {
      for (const shard of shards) if (thrown.has(shard)) thrown.set(shard, false)
    },
  }
}

export async function publishApart(
  sink: Sink,
  events: readonly OutgoingEvent[],
  options: PublishOptions & { readonly isProven: boolean },
): Promise<Verdicts> {
  const round: Round = { since: performance.now(), verdicts: noVerdicts(), thrown: [], row: 0, last: undefined }
  // In random order: some that are always thrown back must not be the only ones that are ever tried.
  for (const group of shuffle(groupBy(events, ({ shard }) => shard))) {
    if (isEnough(round)) break
    const suspects = new Set(group.filter(({ attempts }) => attempts > 0).map(laneOf))
    const rest = group.filter((event) => !suspects.has(laneOf(event)))
    const together = rest.length > 1 && (await tryPublish(round, sink, rest, options))
    const single = together ? group.filter((event) => suspects.has(laneOf(event))) : group
    for (const lane of shuffle(groupBy(single, laneOf))) {
      if (isEnough(round)) break
      await publishLane(round, sink, lane, options)
    }
  }
  return judge(round, options)
}

function isEnough({ row, since }: Round): boolean {
  return row >= MOST_IN_A_ROW || (row >= IN_A_ROW && performance.now() - since > AT_ONCE_MS)
}

interface Round {
  readonly since: number
  readonly verdicts: Verdicts
  /** Events that were thrown back alone. */
  readonly thrown: { readonly event: OutgoingEvent; readonly error: unknown }[]
  /** How many of them in a row, until now. */
  row: number
  /** What was thrown last. */
  last: unknown
}

/** One after the other, until one does not go through. */
async function publishLane(
  round: Round,
  sink: Sink,
  lane: readonly OutgoingEvent[],
  options: PublishOptions,
): Promise<void> {
  for (const event of lane) {
    if (!(await tryPublish(round, sink, [event], options))) {
      round.thrown.push({ event, error: round.last })
      round.row += 1
      return
    }
    round.row = 0
    if (!round.verdicts.published.includes(event)) return
  }
}

/** Answers false if the sink threw. */
async function tryPublish(
  round: Round,
  sink: Sink,
  events: readonly OutgoingEvent[],
  options: PublishOptions,
): Promise<boolean> {
  try {
    const { published, failed, later, suspects, problem, untried } = await publish(sink, events, options)
    round.verdicts.published.push(...published)
    round.verdicts.failed.push(...failed)
    round.verdicts.later.push(...later)
    round.verdicts.suspects.push(...suspects)
    if (problem) round.verdicts.problem ??= problem
    if (untried) round.verdicts.untried ??= untried
    return true
  } catch (error) {
    if (!(error instanceof DestinationDown)) throw error
    round.last = error.cause
    return false
  }
}

function judge(round: Round, { retry, isProven }: PublishOptions & { readonly isProven: boolean }): Verdicts {
  const { verdicts, thrown, last } = round
  const accepted = verdicts.published.length + verdicts.failed.length > 0
  const failedBefore = thrown.every(({ event }) => event.attempts > 0)
  // Those at the end of a long row were thrown back because the destination went away.
  // What proof there is from before is good for a few.
  const few = accepted || !isProven ? thrown.slice(0, -round.row) : thrown.slice(0, IN_A_ROW - 1)
  const alone = round.row >= IN_A_ROW ? few : thrown
  const blamed = accepted || isProven || failedBefore ? alone : []
  if (!accepted && blamed.length === 0 && thrown.length > 0) throw new DestinationDown(last)
  for (const { event, error } of blamed) {
    // An adapter has said that the destination is to blame: it takes more than one failure to doubt that.
    if (isOfTheDestination(error)) suspect(verdicts, event, error)
    else verdicts.failed.push(blame(event, { error, retry: true }, retry))
  }
  return verdicts
}

function suspect(verdicts: Verdicts, event: OutgoingEvent, error: unknown): void {
  verdicts.problem ??= { error }
  verdicts.suspects.push({ event, refusal: { error, retry: true, down: true } })
}

/** What goes one after the other: the events of a key; an event without one is on its own. */
function laneOf({ n, key }: OutgoingEvent): string {
  return key === undefined ? `n${n}` : `k${key}`
}

function groupBy<K>(events: readonly OutgoingEvent[], by: (event: OutgoingEvent) => K): OutgoingEvent[][] {
  const groups = new Map<K, OutgoingEvent[]>()
  for (const event of events) {
    const group = groups.get(by(event))
    if (group) group.push(event)
    else groups.set(by(event), [event])
  }
  return [...groups.values()]
}

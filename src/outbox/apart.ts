/**
 * Apart: a sink that throws for a whole batch may be down, or may have met the one event that it cannot take. After some
 * throws in a row the batch is published shard by shard, and a shard that is thrown back event by event, so that the
 * event is found and blamed, and the others go through.
 *
 * Nobody is blamed for a destination that is down. An event is blamed if others were accepted around it: at least one in
 * the same round, and no more than a few were thrown back in a row. An event that has failed before is also blamed when
 * it is alone, for there may be no other any more.
 */
import type { Sink } from '../brokers/sink.js'
import { toFailure } from '../failure.js'
import { DestinationDown, publish, type OutgoingEvent, type PublishOptions, type Verdicts } from './publish.js'

/** How a relay publishes: as a whole, or apart. */
export interface Care {
  readonly apart: boolean
}

/** So many throws in a row, and the destination is taken to be down for the rest of the round. */
const IN_A_ROW = 4

export async function publishApart(
  sink: Sink,
  events: readonly OutgoingEvent[],
  options: PublishOptions,
): Promise<Verdicts> {
  const round: Round = { published: [], failed: [], thrown: [], row: 0, last: undefined }
  // In random order: some that are always thrown back must not be the only ones that are ever tried.
  for (const group of shuffle(groupBy(events, ({ shard }) => shard))) {
    if (round.row >= IN_A_ROW) break
    const suspects = new Set(group.filter(({ attempts }) => attempts > 0).map(laneOf))
    const rest = group.filter((event) => !suspects.has(laneOf(event)))
    const together = rest.length > 1 && (await tryPublish(round, sink, rest, options))
    const single = together ? group.filter((event) => suspects.has(laneOf(event))) : group
    for (const lane of shuffle(groupBy(single, laneOf))) {
      if (round.row >= IN_A_ROW) break
      await publishLane(round, sink, lane, options)
    }
  }
  return judge(round, events, options)
}

interface Round {
  readonly published: OutgoingEvent[]
  readonly failed: Verdicts['failed']
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
    if (round.failed.some((one) => one.event === event)) return
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
    const { published, failed } = await publish(sink, events, options)
    round.published.push(...published)
    round.failed.push(...failed)
    return true
  } catch (error) {
    if (!(error instanceof DestinationDown)) throw error
    round.last = error.cause
    return false
  }
}

function judge(round: Round, events: readonly OutgoingEvent[], { retry }: PublishOptions): Verdicts {
  const { published, failed, thrown, last } = round
  const isAlone = events.length === 1 && events[0]!.attempts > 0
  if (published.length + failed.length === 0 && !isAlone) throw new DestinationDown(last)
  // Those at the end of a long row were thrown back because the destination went away.
  const blamed = round.row >= IN_A_ROW ? thrown.slice(0, -round.row) : thrown
  for (const { event, error } of blamed) {
    failed.push({ event, failure: toFailure(error), delayMs: retry(error, event.attempts + 1) })
  }
  return { published, failed }
}

/** What goes one after the other: the events of a key; an event without one is on its own. */
function laneOf({ n, message: { key } }: OutgoingEvent): string {
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

function shuffle<T>(list: T[]): T[] {
  for (let at = list.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1))
    ;[list[at], list[other]] = [list[other]!, list[at]!]
  }
  return list
}

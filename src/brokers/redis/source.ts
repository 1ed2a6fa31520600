/**
 * Redis Streams as a source: a consumer group, shared by as many processes as you like.
 *
 *     what was ours already → what is due again → what others left → what is new → deliver → acknowledge after the commit
 *
 * Redis has no way to give an entry back. One that may not be acknowledged stays pending and is read again when its
 * time has come; what is behind it in its key waits with it. While an entry is here, its idle time is set back again and again, so nobody takes it over.
 */
import { sleep } from '../../backoff.js'
import { createReopening } from '../reopening.js'
import type { Incoming, Outcome } from '../../message.js'
import { firstInOrder, takeInOrder } from '../in-order.js'
import { awayMs, failedAgainAfterMs } from '../redelivery.js'
import { createRunner, type Receiver, type Run } from '../run.js'
import type { Source, Warn } from '../source.js'
import { connect, type Connection } from './client.js'
import { readEntry } from './event.js'
import { openGroup, retire, type Found, type Group } from './group.js'
import { comparePlaces, placeOf } from './id.js'
import { createLosses } from './losses.js'
import type { RedisEntry, ResolvedSource } from './options.js'
import { findWarnings } from './warnings.js'

/** Entries, and whether they were given to somebody before. */
interface Batch {
  readonly entries: readonly RedisEntry[]
  readonly redelivered: boolean
  /** Of those, what nobody but this process was given. It lives, so nobody has died of it. */
  readonly waited?: ReadonlyMap<string, Waiting>
}

/** A read waits for so long at most. */
const BLOCK_MS = 5_000
const UNBLOCK_MS = 50
/** The idle time is set back so many times within `minIdleMs`. */
const BEATS = 4
/** While so many wait for their time, nothing new is read. */
const MOST_WAITING = 10_000
/** How often to look for entries that were trimmed before anybody was given them. */
const LOOK_MS = 1_000

/** An entry as the box gets it. */
interface Delivery {
  readonly id: string
  readonly incoming: Incoming
  readonly key: string | undefined
  /** It was given to nobody else before. */
  readonly isFresh: boolean
  /** How often it failed here. */
  readonly failures: number
}

/** An entry that waits for its time, or for one before it in its key. */
interface Waiting {
  readonly id: string
  readonly place: bigint
  readonly key: string | undefined
  /** Not to be delivered before, by `performance.now()`: no clock that is set stalls it. */
  readonly at: number
  readonly isFresh: boolean
  readonly failures: number
}
const FIRST = '0-0'

export function createSource(options: ResolvedSource): Source {
  return createRunner(`redis:${options.stream}/${options.group}`, (box) => begin(options, box))
}

async function begin(options: ResolvedSource, { deliver, report, warn }: Receiver): Promise<Run> {
  const { minIdleMs } = options
  let group: Group | undefined = await open(options, warn)
  const reopening = createReopening({ firstMs: 100, mostMs: 5_000, lastingMs: 1_000 })
  reopening.opened()
  // From now on the group was there: if it is gone, so is its place, and whatever comes is new.
  const again = { ...options, begin: '0' as const }
  let troubled = false
  let stopping = false
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))

  /** In delivery; and not acknowledged, or behind one that is not. */
  const running = new Set<string>()
  const waiting = new Map<string, Waiting>()
  /** Taken by the box, and perhaps not acknowledged: the connection may be lost before. */
  const committed = new Set<string>()
  /** How far our own entries of before were read; undefined when they all were. */
  let own: string | undefined = FIRST
  let cursor = FIRST
  let takeOverAt = 0

  const losses = createLosses(report)
  let lookAt = 0
  /** What of it is new here. What is gone is told, and forgotten. */
  const keep = async (from: Group, { entries, gone }: Found): Promise<readonly RedisEntry[]> => {
    await lose(from, gone)
    return entries.filter(({ id }) => !waiting.has(id))
  }
  const lose = async (from: Group, gone: readonly string[]): Promise<void> => {
    for (const id of gone) waiting.delete(id)
    losses.gone(gone)
    await from.acknowledge(gone)
  }
  const readNew = async (from: Group, blockMs: number): Promise<readonly RedisEntry[]> => {
    if (performance.now() >= lookAt) {
      const skipped = await from.findSkipped()
      if (skipped) losses.skipped(skipped)
      lookAt = performance.now() + LOOK_MS
    }
    return from.readNew(blockMs)
  }

  const next = async (from: Group): Promise<Batch> => {
    while (own !== undefined) {
      const found = await from.readOwn(own)
      own = lastOf([...found.entries.map(({ id }) => id), ...found.gone])
      const entries = await keep(from, found)
      // To read them again does not make them fresh.
      await from.setIdle(
        entries.map(({ id }) => id),
        0,
      )
      if (entries.length > 0) return { entries, redelivered: true }
    }
    const now = performance.now()
    const inOrder = [...waiting.values()].sort(byPlace)
    const { taken } = takeInOrder(inOrder, options.batch, { keyOf, isDue: ({ at }) => at <= now })
    if (taken.length > 0) {
      const { entries, gone } = await from.readAgain(taken.map(({ id }) => id))
      const waited = new Map(taken.map((one) => [one.id, one]))
      for (const { id } of taken) waiting.delete(id)
      await lose(from, gone)
      return { entries, redelivered: true, waited }
    }
    if (now >= takeOverAt) {
      const found = await from.takeOver(cursor)
      cursor = found.cursor
      if (cursor === FIRST) takeOverAt = now + minIdleMs / 2
      return { entries: await keep(from, found), redelivered: true }
    }
    const nextAt = firstInOrder(inOrder, { keyOf }).reduce((least, { at }) => Math.min(least, at), takeOverAt)
    const idleMs = Math.min(BLOCK_MS, nextAt - now)
    if (waiting.size < MOST_WAITING) return { entries: await readNew(from, idleMs), redelivered: false }
    warn(
      `nothing new is read while ${MOST_WAITING} entries wait for their retry; use a stored consumer, or retryBy: 'box'`,
    )
    await sleep(idleMs, stopped)
    return { entries: [], redelivered: false }
  }

  const wait = ({ id, key, isFresh, failures }: Delivery, delayMs: number): void => {
    waiting.set(id, { id, place: placeOf(id), key, at: performance.now() + delayMs, isFresh, failures })
  }

  /** Those that may be delivered: what has an earlier one of its key that waits is to wait too. */
  const inTurn = (deliveries: readonly Delivery[]): readonly Delivery[] => {
    const firstOfKey = new Map<string, bigint>()
    for (const { key, place } of waiting.values()) {
      if (key !== undefined && place < (firstOfKey.get(key) ?? place + 1n)) firstOfKey.set(key, place)
    }
    return deliveries.filter((one) => {
      const first = one.key === undefined ? undefined : firstOfKey.get(one.key)
      const isFree = first === undefined || placeOf(one.id) < first
      if (!isFree) wait(one, 0)
      return isFree
    })
  }

  const acknowledge = async (to: Group): Promise<void> => {
    await to.acknowledge([...committed])
    committed.clear()
  }

  let rejections = 0
  const deliverBatch = async (to: Group, { entries, redelivered, waited }: Batch): Promise<void> => {
    const read = entries.map((entry): Delivery => {
      const { isFresh = !redelivered, failures = 0 } = waited?.get(entry.id) ?? {}
      const incoming = readEntry(entry, !isFresh, options)
      return { id: entry.id, incoming, key: incoming.key, isFresh, failures }
    })
    const deliveries = inTurn(read)
    if (deliveries.length === 0) return
    for (const { id } of deliveries) running.add(id)
    try {
      let outcomes: readonly Outcome[]
      try {
        outcomes = await deliver(deliveries.map(({ incoming }) => incoming))
      } catch {
        // The box cannot take anything now, and has told its hooks why: after the pause they come first.
        for (const one of deliveries) wait(one, 0)
        await sleep(awayMs(rejections++), stopped)
        return
      }
      rejections = 0
      deliveries.forEach((one, at) => {
        const outcome = outcomes[at]!
        if (outcome.ack) committed.add(one.id)
        else {
          const failures = one.failures + (outcome.status === 'failed' ? 1 : 0)
          wait({ ...one, failures }, failedAgainAfterMs(outcome, one.failures))
        }
      })
      await acknowledge(to)
    } finally {
      for (const { id } of deliveries) running.delete(id)
    }
  }

  const work = async (): Promise<void> => {
    while (!stopping) {
      try {
        if (!group) {
          group = await open(again, warn)
          reopening.opened()
          // What was read and not received is among our own.
          own = FIRST
          cursor = FIRST
          // Delivered again it would need its time again: connections that live shorter than that would get nowhere.
          await acknowledge(group)
          continue
        }
        const batch = await next(group)
        if (troubled) report()
        troubled = false
        if (batch.entries.length > 0) await deliverBatch(group, batch)
      } catch (error) {
        group?.close()
        group = undefined
        if (stopping) return
        troubled = true
        report(error)
        reopening.lost()
        await sleep(reopening.waitMs(), stopped)
      }
    }
  }

  const beat = async (): Promise<void> => {
    const ids = [...running, ...waiting.keys()]
    try {
      // What is running is in hand, trimmed or not.
      if (group?.isOpen && ids.length > 0) {
        const gone = await group.setIdle(ids, 0)
        if (group)
          await lose(
            group,
            gone.filter((id) => waiting.has(id)),
          )
      }
    } catch {
      // The next read fails as well, and that is reported.
    }
    losses.tell()
    if (!stopping) timer = setTimeout(() => void beat(), minIdleMs / BEATS)
  }
  let timer = setTimeout(() => void beat(), minIdleMs / BEATS)

  const working = work().finally(() => (ended = true))
  let ended = false
  /** A read that is cut off could have taken entries already, so it is asked to end; it may only just begin to wait. */
  const unblock = async (): Promise<void> => {
    while (!ended) {
      await group?.unblock().catch(() => undefined)
      await sleep(UNBLOCK_MS, working)
    }
  }
  return {
    async end() {
      stopping = true
      stop()
      await unblock()
      await working
      clearTimeout(timer)
      losses.flush()
      // Others may have at once what waits here.
      await group?.setIdle([...waiting.keys()], minIdleMs).catch(() => undefined)
      group?.close()
      if (options.isOurs) await leave(options).catch(() => undefined)
    },
  }
}

async function open(options: ResolvedSource, warn: Warn): Promise<Group> {
  const connections: Connection[] = []
  try {
    const reader = await connect(options)
    connections.push(reader)
    const commands = await connect(options)
    connections.push(commands)
    const group = await openGroup(options, reader, commands)
    for (const text of await findWarnings(options, commands)) warn(text)
    return group
  } catch (error) {
    for (const one of connections) one.close()
    throw error
  }
}

async function leave(options: ResolvedSource): Promise<void> {
  const commands = await connect(options)
  try {
    await retire(options, commands, options.consumer, 0)
  } finally {
    commands.close()
  }
}

function byPlace(a: { readonly place: bigint }, b: { readonly place: bigint }): number {
  return comparePlaces(a.place, b.place)
}

function lastOf(ids: readonly string[]): string | undefined {
  const places = ids.map((id) => ({ id, place: placeOf(id) }))
  return places.sort(byPlace).at(-1)?.id
}

function keyOf({ key }: Waiting): string | undefined {
  return key
}

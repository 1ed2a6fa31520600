/**
 * What a source reads next:
 *
 *     what was ours already → what is due again → what others left → what is new
 *
 * Entries that were trimmed before they were handled are told as losses, and acknowledged.
 */
import { sleep } from '../../backoff.js'
import type { OwnTurn } from '../../lifecycle.js'
import type { Warn } from '../source.js'
import type { Found, Group } from './group.js'
import { compareIds } from './id.js'
import type { Losses } from './losses.js'
import type { RedisEntry, ResolvedSource } from './options.js'
import type { Waiting, WaitingEntry } from './waiting.js'

/** Entries, and whether they were given to somebody before. */
export interface Batch {
  readonly entries: readonly RedisEntry[]
  readonly redelivered: boolean
  /** Of those, what nobody but this process was given. It lives, so nobody has died of it. */
  readonly waited?: ReadonlyMap<string, WaitingEntry>
}

export interface Reading {
  next(from: Group): Promise<Batch>
  /** Forgets entries that are no longer in the stream. */
  lose(from: Group, gone: readonly string[]): Promise<void>
  /** After a lost connection: what was read and not received is among our own entries. */
  startOver(): void
}

/** A read waits for so long at most. */
const BLOCK_MS = 5_000
/** While so many wait for their time, nothing new is read. */
const MOST_WAITING = 10_000
/** How often to look for entries that were trimmed before anybody was given them. */
const LOOK_MS = 1_000
const FIRST = '0-0'

export interface Ground {
  readonly waiting: Waiting
  readonly losses: Losses
  readonly turn: OwnTurn
  readonly warn: Warn
}

export function createReading({ batch, minIdleMs }: ResolvedSource, { waiting, losses, turn, warn }: Ground): Reading {
  /** How far our own entries of before were read; undefined when they all were. */
  let own: string | undefined = FIRST
  let cursor = FIRST
  let takeOverAt = 0
  let lookAt = 0

  const lose = async (from: Group, gone: readonly string[]): Promise<void> => {
    waiting.remove(gone)
    losses.gone(gone)
    await from.acknowledge(gone)
  }
  /** What of it is new here. */
  const keep = async (from: Group, { entries, gone }: Found): Promise<readonly RedisEntry[]> => {
    await lose(from, gone)
    return entries.filter(({ id }) => !waiting.has(id))
  }

  const readOwn = async (from: Group): Promise<Batch | undefined> => {
    while (own !== undefined) {
      const found = await from.readOwn(own)
      own = lastOf([...found.entries.map(({ id }) => id), ...found.gone])
      const entries = await keep(from, found)
      // To read them again does not make them fresh.
      const ids = entries.map(({ id }) => id)
      await from.setIdle(ids, 0)
      if (entries.length > 0) return { entries, redelivered: true }
    }
    return undefined
  }

  const readDue = async (from: Group): Promise<Batch | undefined> => {
    const due = waiting.due(batch)
    if (due.length === 0) return undefined
    const ids = due.map(({ id }) => id)
    const { entries, gone } = await from.readAgain(ids)
    waiting.remove(ids)
    await lose(from, gone)
    return { entries, redelivered: true, waited: new Map(due.map((one) => [one.id, one])) }
  }

  const takeOver = async (from: Group): Promise<Batch | undefined> => {
    const now = performance.now()
    if (now < takeOverAt) return undefined
    const found = await from.takeOver(cursor)
    cursor = found.cursor
    if (cursor === FIRST) takeOverAt = now + minIdleMs / 2
    return { entries: await keep(from, found), redelivered: true }
  }

  const readNew = async (from: Group): Promise<Batch> => {
    const idleMs = Math.min(BLOCK_MS, Math.min(waiting.nextDueAt(), takeOverAt) - performance.now())
    if (waiting.size >= MOST_WAITING) {
      warn(
        `nothing new is read while ${MOST_WAITING} entries wait for their retry; use a stored consumer, or retryBy: 'box'`,
      )
      await sleep(idleMs, turn.over)
      return { entries: [], redelivered: false }
    }
    await lookForSkipped(from)
    return { entries: await from.readNew(idleMs), redelivered: false }
  }
  const lookForSkipped = async (from: Group): Promise<void> => {
    if (performance.now() < lookAt) return
    const skipped = await from.findSkipped()
    if (skipped) losses.skipped(skipped)
    lookAt = performance.now() + LOOK_MS
  }

  return {
    async next(from) {
      return (await readOwn(from)) ?? (await readDue(from)) ?? (await takeOver(from)) ?? (await readNew(from))
    },
    lose,
    startOver() {
      own = FIRST
      cursor = FIRST
    },
  }
}

function lastOf(ids: readonly string[]): string | undefined {
  return [...ids].sort(compareIds).at(-1)
}

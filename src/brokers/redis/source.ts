/**
 * Redis Streams as a source: a consumer group, shared by as many processes as you like.
 *
 *     what was ours already → what is due again → what others left → what is new → deliver → acknowledge after the commit
 *
 * Redis has no way to give an entry back. One that may not be acknowledged stays pending and is read again when its
 * time has come. While an entry is here, its idle time is set back again and again, so nobody takes it over.
 */
import { backoffMs, sleep } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import type { Outcome } from '../../message.js'
import { redeliverAfterMs } from '../redelivery.js'
import { createRunner, type Report, type Run } from '../run.js'
import type { Deliver, Source } from '../source.js'
import { connect, type Connection } from './client.js'
import { readEntry } from './event.js'
import { openGroup, retire, type Found, type Group } from './group.js'
import type { RedisEntry, ResolvedSource } from './options.js'

/** Entries, and whether they were given to somebody before. */
interface Batch {
  readonly entries: readonly RedisEntry[]
  readonly redelivered: boolean
}

/** A read waits for so long at most. */
const BLOCK_MS = 5_000
const UNBLOCK_MS = 50
/** The idle time is set back so many times within `minIdleMs`. */
const BEATS = 4
/** More failures than that at a time are left for `takeOver`. */
const MOST_WAITING = 10_000
const FIRST = '0-0'

export function createSource(options: ResolvedSource): Source {
  return createRunner((deliver, report) => begin(options, deliver, report))
}

async function begin(options: ResolvedSource, deliver: Deliver, report: Report): Promise<Run> {
  const { minIdleMs } = options
  let group: Group | undefined = await open(options)
  let troubled = false
  let stopping = false
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))

  /** In delivery; and not acknowledged, with the time at which they are due again. */
  const running = new Set<string>()
  const waiting = new Map<string, number>()
  /** How far our own entries of before were read; undefined when they all were. */
  let own: string | undefined = FIRST
  let cursor = FIRST
  let takeOverAt = 0

  const keep = ({ entries, gone }: Found): readonly RedisEntry[] => {
    if (gone.length > 0) {
      const advice = 'trim less, or consume faster'
      report(new OnceboxError('NOT_FOUND', `trimmed before they were handled: ${gone.join(', ')}; ${advice}`))
      report()
    }
    return entries.filter(({ id }) => !waiting.has(id))
  }

  const next = async (from: Group): Promise<Batch> => {
    while (own !== undefined) {
      const found = await from.readOwn(own)
      own = [...found.entries.map(({ id }) => id), ...found.gone].sort(byPlace).at(-1)
      await from.acknowledge(found.gone)
      const entries = keep(found)
      // To read them again does not make them fresh.
      await from.setIdle(
        entries.map(({ id }) => id),
        0,
      )
      if (entries.length > 0) return { entries, redelivered: true }
    }
    const now = Date.now()
    const due = [...waiting].filter(([, at]) => at <= now).map(([id]) => id)
    if (due.length > 0) {
      const ids = due.slice(0, options.batch)
      const entries = await from.readAgain(ids)
      for (const id of ids) waiting.delete(id)
      return { entries, redelivered: true }
    }
    if (now >= takeOverAt) {
      const found = await from.takeOver(cursor)
      cursor = found.cursor
      if (cursor === FIRST) takeOverAt = now + minIdleMs / 2
      return { entries: keep(found), redelivered: true }
    }
    const nextAt = Math.min(takeOverAt, ...waiting.values())
    return { entries: await from.readNew(Math.min(BLOCK_MS, nextAt - now)), redelivered: false }
  }

  const wait = (ids: readonly string[], delayMs: number): void => {
    const at = Date.now() + delayMs
    for (const id of ids) if (waiting.size < MOST_WAITING) waiting.set(id, at)
  }

  let rejections = 0
  const deliverBatch = async (to: Group, { entries, redelivered }: Batch): Promise<void> => {
    for (const { id } of entries) running.add(id)
    try {
      let outcomes: readonly Outcome[]
      try {
        outcomes = await deliver(entries.map((entry) => readEntry(entry, redelivered, options)))
      } catch {
        // The box cannot take anything now, and has told its hooks why.
        const delayMs = backoffMs(rejections++, 500, 30_000)
        wait(
          entries.map(({ id }) => id),
          delayMs,
        )
        await sleep(delayMs, stopped)
        return
      }
      rejections = 0
      const done: string[] = []
      entries.forEach(({ id }, at) => {
        const outcome = outcomes[at]!
        if (outcome.ack) done.push(id)
        else wait([id], redeliverAfterMs(outcome))
      })
      await to.acknowledge(done)
    } finally {
      for (const { id } of entries) running.delete(id)
    }
  }

  const work = async (): Promise<void> => {
    for (let failures = 0; !stopping;) {
      try {
        if (!group) {
          group = await open(options)
          // What was read and not received, or acknowledged in vain, is among our own.
          own = FIRST
          cursor = FIRST
          continue
        }
        const batch = await next(group)
        failures = 0
        if (troubled) report()
        troubled = false
        if (batch.entries.length > 0) await deliverBatch(group, batch)
      } catch (error) {
        group?.close()
        group = undefined
        if (stopping) return
        troubled = true
        report(error)
        await sleep(backoffMs(failures++, 100, 5_000), stopped)
      }
    }
  }

  const beat = async (): Promise<void> => {
    const ids = [...running, ...waiting.keys()]
    // If it fails, the next read fails as well, and that is reported.
    if (group?.isOpen && ids.length > 0) await group.setIdle(ids, 0).catch(() => undefined)
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
      // Others may have at once what waits here.
      await group?.setIdle([...waiting.keys()], minIdleMs).catch(() => undefined)
      group?.close()
      if (options.isOurs) await leave(options).catch(() => undefined)
    },
  }
}

async function open(options: ResolvedSource): Promise<Group> {
  const connections: Connection[] = []
  try {
    const reader = await connect(options)
    connections.push(reader)
    const commands = await connect(options)
    connections.push(commands)
    return await openGroup(options, reader, commands)
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

/** Ids are two numbers, and not in the order of text. */
function byPlace(a: string, b: string): number {
  const [ms = 0, n = 0] = a.split('-').map(BigInt)
  const [otherMs = 0, otherN = 0] = b.split('-').map(BigInt)
  if (ms !== otherMs) return ms < otherMs ? -1 : 1
  return n < otherN ? -1 : n > otherN ? 1 : 0
}

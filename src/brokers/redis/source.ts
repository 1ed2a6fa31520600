/**
 * Redis Streams as a source: a consumer group, shared by as many processes as you like.
 *
 *     open the group → read (`reading.ts`) → deliver, and acknowledge after the commit (`deliveries.ts`) → read on
 *
 * One that may not be acknowledged stays pending and is read again when its time has come (`waiting.ts`). While an entry is
 * here, its idle time is set back again and again, so that nobody takes it over.
 */
import { sleep } from '../../backoff.js'
import { beginTurn } from '../../lifecycle.js'
import { createReopening } from '../reopening.js'
import { createReports, createRunner, type Receiver, type Run } from '../run.js'
import type { Source, Warn } from '../source.js'
import { connect, type Connection } from './client.js'
import { createDeliveries } from './deliveries.js'
import { openGroup, retire, type Group } from './group.js'
import { createLosses } from './losses.js'
import type { ResolvedSource } from './options.js'
import { createReading } from './reading.js'
import { Waiting } from './waiting.js'
import { findWarnings } from './warnings.js'

const REOPENING = { firstMs: 100, mostMs: 5_000, lastingMs: 1_000 }
const UNBLOCK_MS = 50
/** The idle time is set back so many times within `minIdleMs`. */
const BEATS = 4

export function createSource(options: ResolvedSource): Source {
  return createRunner(`redis:${options.stream}/${options.group}`, (box) => begin(options, box))
}

async function begin(options: ResolvedSource, { deliver, report, warn }: Receiver): Promise<Run> {
  const { minIdleMs } = options
  let group: Group | undefined = await open(options, warn)
  const reopening = createReopening(REOPENING)
  reopening.opened()
  const turn = beginTurn()
  const reports = createReports(report)
  const { tell } = reports
  const losses = createLosses(reports)
  const waiting = new Waiting()
  const reading = createReading(options, { waiting, losses, turn, warn })
  const deliveries = createDeliveries(options, { deliver, waiting, turn })

  const reopen = async (): Promise<void> => {
    // The group was there before: if it is gone, so is its place, and whatever comes is new.
    group = await open({ ...options, begin: '0' }, warn)
    reopening.opened()
    reading.startOver()
    // Delivered again it would need its time again: connections that live shorter than that would get nowhere.
    await deliveries.acknowledge(group)
  }
  const readAndDeliver = async (from: Group): Promise<void> => {
    const batch = await reading.next(from)
    tell()
    if (batch.entries.length > 0) await deliveries.deliver(batch, from)
  }
  const work = async (): Promise<void> => {
    while (turn.goesOn()) {
      try {
        await (group ? readAndDeliver(group) : reopen())
      } catch (error) {
        group?.close()
        group = undefined
        if (!turn.goesOn()) return
        tell(error)
        reopening.lost()
        await sleep(reopening.waitMs(), turn.over)
      }
    }
  }

  const setBackIdleTimes = async (): Promise<void> => {
    const ids = [...deliveries.running(), ...waiting.ids()]
    if (!group?.isOpen || ids.length === 0) return
    const gone = await group.setIdle(ids, 0)
    // What is running is in hand, trimmed or not.
    const lost = gone.filter((id) => waiting.has(id))
    if (group) await reading.lose(group, lost)
  }
  const beat = async (): Promise<void> => {
    // If it fails, the next read fails as well, and that is reported.
    await setBackIdleTimes().catch(() => undefined)
    losses.tell()
    if (turn.goesOn()) timer = setTimeout(() => void beat(), minIdleMs / BEATS)
  }
  let timer = setTimeout(() => void beat(), minIdleMs / BEATS)

  let hasEnded = false
  const working = work().finally(() => (hasEnded = true))
  /** A read that is cut off could have taken entries already, so it is asked to end; it may only just begin to wait. */
  const unblock = async (): Promise<void> => {
    while (!hasEnded) {
      await group?.unblock().catch(() => undefined)
      await sleep(UNBLOCK_MS, working)
    }
  }

  return {
    async end() {
      turn.end()
      await unblock()
      await working
      clearTimeout(timer)
      losses.flush()
      // Others may have at once what waits here.
      await group?.setIdle(waiting.ids(), minIdleMs).catch(() => undefined)
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

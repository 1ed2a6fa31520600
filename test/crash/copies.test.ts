/** Copies of one message, handed at once to several processes. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { deliverFrom, misses, openArena, type Arena, type ConsumerSpec } from './arena.js'

const ROUNDS = Number(process.env['ONCEBOX_CRASH_ROUNDS'] ?? 100)
const COPIES = 50
const PROCESSES = 4
/** Rounds in flight at a time. */
const WAVE = 20

let arena: Arena
beforeAll(async () => {
  arena = await openArena('copies')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

/** Delivers every round's copies and answers with the statuses by id. */
async function deliverCopies(consumer: ConsumerSpec, door: 'receive' | 'handle', start: boolean) {
  await arena.register([consumer])
  const workers = await Promise.all(
    Array.from({ length: PROCESSES }, () => arena.worker({ consumers: [consumer], start, pool: { max: 12 } })),
  )
  const ids = Array.from({ length: ROUNDS }, (_, round) => `${consumer.name}-${round}`)
  const statuses = new Map<string, string[]>(ids.map((id) => [id, []]))
  for (let at = 0; at < ROUNDS; at += WAVE) {
    const wave = ids.slice(at, at + WAVE).map((id): Incoming => ({ id, type: consumer.name, data: { seq: 1 } }))
    const answers = await Promise.all(
      workers.map((worker, index) => {
        const copies = Math.floor(COPIES / PROCESSES) + (index < COPIES % PROCESSES ? 1 : 0)
        return deliverFrom(worker, door, Array.from({ length: copies }, (_, copy) => callsOf(wave, copy)).flat())
      }),
    )
    for (const answer of answers.flat()) {
      if ('rejected' in answer) throw new Error(`a call was rejected: ${answer.rejected}`)
      for (const { id, status, ack } of answer) {
        statuses.get(id)!.push(status)
        expect(ack).toBe(status !== 'busy')
      }
    }
  }
  return { ids, statuses }
}

/** One copy of each message: one call each, or a few of them in one call. */
function callsOf(wave: Incoming[], copy: number): Incoming[][] {
  const size = copy % 3 === 2 ? 5 : 1
  return Array.from({ length: Math.ceil(wave.length / size) }, (_, i) => wave.slice(i * size, (i + 1) * size))
}

test(`${COPIES} copies handled on arrival run once, in ${ROUNDS} rounds`, { timeout: 400_000 }, async () => {
  const consumer = { name: 'inline', options: { mode: 'inline' } }
  const { ids, statuses } = await deliverCopies(consumer, 'handle', false)
  for (const list of statuses.values()) {
    expect(list).toHaveLength(COPIES)
    expect(list.filter((status) => status === 'handled')).toHaveLength(1)
    expect(list.every((status) => ['handled', 'duplicate', 'busy'].includes(status))).toBe(true)
  }
  expect(misses(await arena.effects('inline'), ids)).toEqual({ doubled: [], lost: [] })
  expect(await arena.work('inline')).toEqual([])
})

test(`${COPIES} copies received are stored once and run once, in ${ROUNDS} rounds`, { timeout: 400_000 }, async () => {
  const { ids, statuses } = await deliverCopies({ name: 'stored' }, 'receive', true)
  for (const list of statuses.values()) {
    expect(list).toHaveLength(COPIES)
    expect(list.filter((status) => status === 'stored')).toHaveLength(1)
    expect(list.filter((status) => status === 'duplicate')).toHaveLength(COPIES - 1)
  }
  await arena.drained({ consumer: 'stored' })
  expect(misses(await arena.effects('stored'), ids)).toEqual({ doubled: [], lost: [] })
})

const PASTS = {
  plain: { redelivered: false, data: {} },
  redelivered: { redelivered: true, data: {} },
  'failed before': { redelivered: false, data: { failTimes: 1 } },
  'failed before and redelivered': { redelivered: true, data: { failTimes: 1 } },
}
const SHAPES = { handler: {}, batch: { batched: true }, effect: { effect: 'call' } }
/** Messages of each case. The long form: `ONCEBOX_CRASH_COPIES=10000 npx vitest run test/crash/copies.test.ts`. */
const MESSAGES = Number(process.env['ONCEBOX_CRASH_COPIES'] ?? 48)
const TIMEOUT_MS = 600_000 + 150 * MESSAGES

const arrivals = Object.keys(PASTS).flatMap((past) =>
  Object.keys(SHAPES).map((shape) => [past, shape] as [keyof typeof PASTS, keyof typeof SHAPES]),
)

test.for(arrivals)('%s (%s): copies at the same moment have one effect', { timeout: TIMEOUT_MS }, async (arrival) => {
  const [past, shape] = arrival
  const { redelivered, data } = PASTS[past]
  const { batched, ...also } = { batched: false, ...SHAPES[shape] }
  const retry = { attempts: 1_000, baseMs: 1, maxMs: 2 }
  const consumer: ConsumerSpec = { name: 'arrivals', batched, options: { mode: 'inline', retry } }
  await arena.register([consumer])
  const spec = { consumers: [consumer], start: false, pool: { max: 12 } }
  const workers = await Promise.all(Array.from({ length: PROCESSES }, () => arena.worker(spec)))
  const ids = Array.from({ length: MESSAGES }, (_, n) => `${past}-${shape}-${n}`)
  const toMessage = (id: string): Incoming => ({
    id,
    type: 'arrivals',
    redelivered,
    data: { ...data, ...also, seq: 1 },
  })
  for (let at = 0; at < MESSAGES; at += WAVE) {
    // Two to five copies, over one to four processes.
    const copies = 2 + ((at / WAVE) % 4)
    const processes = workers.slice(0, 1 + ((at / WAVE) % PROCESSES))
    let left = ids.slice(at, at + WAVE)
    for (let tries = 0; left.length > 0; tries++) {
      if (tries === 200) throw new Error(`never acknowledged: ${left.join(', ')}`)
      const calls = processes.map((_, index) => callsFor(left.map(toMessage), copies, processes.length, index))
      const answers = await Promise.all(processes.map((worker, index) => deliverFrom(worker, 'handle', calls[index]!)))
      const acked = new Set<string>()
      for (const answer of answers.flat(2)) if ('id' in answer && answer.ack) acked.add(answer.id)
      left = left.filter((id) => !acked.has(id))
    }
  }
  expect(misses(await arena.effects('arrivals'), ids)).toEqual({ doubled: [], lost: [] })
  expect(await arena.work('arrivals')).toEqual([])
})

/** This process's share of the copies: one call for each. */
function callsFor(messages: Incoming[], copies: number, processes: number, index: number): Incoming[][] {
  const own = Array.from({ length: copies }, (_, copy) => copy).filter((copy) => copy % processes === index)
  return own.flatMap(() => messages.map((message) => [message]))
}

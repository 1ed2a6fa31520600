/**
 * The bank of examples/scale, with senders that do not give up: transfers are handed in box by box, in their order, with
 * copies of earlier ones among them, and again until they are acknowledged.
 */
import { expect } from 'vitest'
import type { Incoming } from 'oncebox'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { openShards, schemaOf, shardOf, spreadReceive, WORKER, type Shards } from './example.js'

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const BATCH = 10
const COPIES = 0.3

export interface Bank {
  /** Where each box is. After a change: `reopen()`. */
  readonly placement: string[]
  readonly shards: Shards
  /** How many were handed in and not acknowledged, so far. */
  readonly refused: number
  reopen(): Promise<void>
  /** A process that runs all boxes of a server. */
  worker(url: string): Promise<Child>
  /** Hands them in, in order per key, and tells of each batch that is through. */
  handIn(transfers: readonly Incoming[], progress?: (done: number) => void): Promise<void>
  /** Every transfer is booked once on each of its accounts, in order, and no money was made or lost. */
  expectBooked(transfers: readonly Incoming[]): Promise<void>
  close(): Promise<void>
}

export interface BankOptions {
  placement: string[]
  /** One table for all boxes; by default each has its own. */
  entries?: string | undefined
}

export async function openBank({ placement, entries }: BankOptions): Promise<Bank> {
  const options = { logger: SILENT, poolMax: 6, ...(entries !== undefined && { entries }) }
  let shards = openShards(placement, options)
  let refused = 0

  /** What the boxes have booked, one table after the other. */
  const booked = async (): Promise<Entry[]> => {
    const columns = 'account, cents, id, n, after'
    if (entries !== undefined)
      return shards.query(0, `select ${columns} from ${entries}`) as unknown as Promise<Entry[]>
    const tables = shards.boxes.map((_, shard) =>
      shards.query(shard, `select ${columns} from ${schemaOf(shard)}.entry`),
    )
    return (await Promise.all(tables)).flat() as unknown as Entry[]
  }

  const unsettled = async (): Promise<number> => {
    const counts = shards.boxes.map(async (_, shard) => {
      const of = `(select count(*) from ${schemaOf(shard)}.work) + (select count(*) from ${schemaOf(shard)}.delivery)`
      return Number((await shards.query(shard, `select ${of} as n`))[0]!['n'])
    })
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  return {
    placement,
    get shards() {
      return shards
    },
    get refused() {
      return refused
    },
    async reopen() {
      const before = shards
      shards = openShards(placement, options)
      await before.close()
    },
    async worker(url) {
      const run = placement.flatMap((place, shard) => (place === url ? [shard] : []))
      const env = { SCALE_WORKER: JSON.stringify({ placement, run, entries }) }
      const child = spawnChild(new URL(WORKER), { env })
      await child.next('started')
      return child
    },
    async handIn(transfers, progress) {
      let done = 0
      const queues = groupBy(transfers, ({ key = '' }) => shardOf(key))
      const senders = [...queues.values()].map(async (queue) => {
        for (let at = 0; at < queue.length; at += BATCH) {
          const fresh = queue.slice(at, at + BATCH)
          const copies = fresh.flatMap((_, index) => (Math.random() < COPIES ? [queue[(at + index) >> 1]!] : []))
          let batch = [...fresh, ...copies]
          await waitUntil(
            async () => {
              const outcomes = await spreadReceive(shards.boxes, shardOf)(batch)
              batch = batch.filter((_, index) => !outcomes[index]!.ack)
              refused += batch.length
              return batch.length === 0
            },
            { timeoutMs: 180_000, everyMs: 50, what: 'a batch to be acknowledged' },
          )
          progress?.((done += fresh.length))
        }
      })
      await Promise.all(senders)
    },
    async expectBooked(transfers) {
      await waitUntil(async () => (await unsettled()) === 0, { timeoutMs: 180_000, what: 'all to be handled' })
      const entries = await booked()
      const out = entries.filter(({ n }) => n !== null)
      expect(out.map(({ id }) => id).sort()).toEqual(transfers.map(({ id }) => id).sort())
      expect(entries.length - out.length).toBe(transfers.length)
      expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length)
      expect(out.filter(({ n, after }) => n !== (after ?? 0) + 1)).toEqual([])
      expect(entries.reduce((sum, { cents }) => sum + cents, 0)).toBe(0)
    },
    close: () => shards.close(),
  }
}

interface Entry {
  readonly account: string
  readonly cents: number
  readonly id: string
  /** Which transfer of its account it is, and the one before as its handler saw it; null for what arrives. */
  readonly n: number | null
  readonly after: number | null
}

export function transfers(accounts: number, first: number, last: number): Incoming[] {
  const names = Array.from({ length: accounts }, (_, index) => `account-${index}`)
  const rounds = Array.from({ length: last - first + 1 }, (_, index) => first + index)
  return rounds.flatMap((n) =>
    names.map((from, index) => {
      const to = names[(index * 7 + n) % accounts]!
      return { id: `${from}/${n}`, type: 'transfer.ordered', key: from, data: { from, to, cents: n, n } }
    }),
  )
}

function groupBy<K, V>(list: readonly V[], keyOf: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>()
  for (const value of list) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value])
  return groups
}

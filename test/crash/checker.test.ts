/**
 * Everything at once: transfers between accounts, delivered again until they are acknowledged, while handlers fail,
 * processes are killed and frozen, and connections are cut. What was acknowledged is kept outside the database, and at
 * the end the books have to balance.
 *
 *   ONCEBOX_CHECKER_SEED=7 ONCEBOX_CHECKER_MS=60000 npx vitest run test/crash/checker.test.ts
 */
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { startProxy, type Moment, type PostgresProxy } from '../support/proxy.js'
import { ACCOUNTS, audit, CONSUMERS, openBank, SUM, sumOfBalances, toMessage, type Transfer } from './bank.js'

const SEED = Number(process.env['ONCEBOX_CHECKER_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const RUN_MS = Number(process.env['ONCEBOX_CHECKER_MS'] ?? 15_000)
const WORKERS = 3
const PRODUCERS = 5
const BATCH = 10
const BANK = new URL('./children/bank.mjs', import.meta.url)

let database: ScratchDatabase
let pool: pg.Pool
let proxy: PostgresProxy
beforeEach(async () => {
  database = await scratchDatabase('checker')
  pool = new pg.Pool({ connectionString: database.url, max: 6, application_name: 'checker' })
  proxy = await startProxy(database.url)
  await openBank(pool)
})
afterEach(async () => {
  await proxy?.close()
  await pool?.end()
  await database?.close()
})

test('the books balance after kills, freezes, cuts and failures', { timeout: RUN_MS + 120_000 }, async () => {
  // What it takes to repeat the run.
  console.log(`seed ${SEED}: ONCEBOX_CHECKER_SEED=${SEED}`)
  const random = randomNumbers(SEED)
  const ledger = new Map<string, Transfer>()
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => spawnBank(random)))
  const end = performance.now() + RUN_MS
  const isOver = () => performance.now() > end
  const faults: Record<string, number> = {}

  const producers = Array.from({ length: PRODUCERS }, (_, nth) => produce(nth, workers, ledger, random, isOver))
  await Promise.all([inflict(workers, faults, random, isOver), watchSum(isOver), ...producers])

  await waitUntil(async () => (await unfinished()) === 0, { timeoutMs: 90_000, what: 'everything to be settled' })
  await Promise.all(workers.map((worker) => worker.kill('SIGTERM')))
  for (const worker of workers) expect(await worker.exited, worker.output).toEqual({ code: 0, signal: null })
  await waitUntil(async () => (await sessions()) === 0, { what: 'the sessions to end' })

  expect(await audit(pool, ledger)).toEqual([])
  // Else nothing was put to the test.
  expect(ledger.size).toBeGreaterThan(BATCH)
  expect(Object.keys(faults).sort()).toEqual(['cut', 'cut at commit', 'freeze', 'kill', 'terminate'])
})

/** Mulberry32: the same seed, the same numbers. */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

async function spawnBank(random: () => number): Promise<Child> {
  const settings = { url: proxy.url, consumers: CONSUMERS, seed: Math.floor(random() * 2 ** 32) }
  const worker = spawnChild(BANK, { env: { BANK: JSON.stringify(settings) } })
  await worker.next('started', { timeoutMs: 60_000 })
  return worker
}

const pick = <T>(list: readonly T[], random: () => number): T => list[Math.floor(random() * list.length)]!

/** Each producer has accounts of its own, so that it decides the order of their transfers. */
async function produce(
  nth: number,
  workers: readonly Child[],
  ledger: Map<string, Transfer>,
  random: () => number,
  isOver: () => boolean,
): Promise<void> {
  const accounts = Array.from({ length: ACCOUNTS }, (_, id) => id).filter((id) => id % PRODUCERS === nth)
  const next = new Map(accounts.map((id) => [id, 0]))
  const sent: Transfer[][] = []
  while (!isOver()) {
    const batch = Array.from({ length: BATCH }, (): Transfer => {
      const from = pick(accounts, random)
      const seq = next.get(from)!
      next.set(from, seq + 1)
      const to = (from + 1 + Math.floor(random() * (ACCOUNTS - 1))) % ACCOUNTS
      return { id: `${from}-${seq}`, from, to, amount: 1 + Math.floor(random() * 100), seq }
    })
    while (!(await deliver(pick(workers, random), batch, random)));
    for (const transfer of batch) ledger.set(transfer.id, transfer)
    sent.push(batch)
    // A copy of what was acknowledged before, as brokers send them.
    if (random() < 0.3) await deliver(pick(workers, random), pick(sent, random), random)
  }
}

let deliveries = 0
/** Answers whether all of it was acknowledged. */
async function deliver(worker: Child, batch: readonly Transfer[], random: () => number): Promise<boolean> {
  const n = ++deliveries
  worker.send('deliver', { n, door: random() < 0.6 ? 'receive' : 'handle', messages: batch.map(toMessage) })
  try {
    const { acks } = await worker.next(`delivered:${n}`, { timeoutMs: 90_000 })
    return Array.isArray(acks) && acks.every(Boolean)
  } catch {
    // It was killed, or is frozen: the next one gets it.
    return false
  }
}

async function inflict(
  workers: Child[],
  faults: Record<string, number>,
  random: () => number,
  isOver: () => boolean,
): Promise<void> {
  const kinds: Record<string, (at: number) => Promise<void>> = {
    kill: async (at) => {
      await workers[at]!.kill('SIGKILL')
      workers[at] = await spawnBank(random)
    },
    freeze: async (at) => {
      const frozen = workers[at]!
      await frozen.kill('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, 1_500 * random()))
      await frozen.kill('SIGCONT')
    },
    cut: async () => proxy.cutAll({ reset: random() < 0.5 }),
    'cut at commit': async () => {
      const cut = proxy.cutAtCommit(pick<Moment>(['before', 'during', 'after'], random))
      await Promise.race([cut, new Promise((resolve) => setTimeout(resolve, 1_000))])
    },
    terminate: async () => {
      await pool.query(`select pg_terminate_backend(pid) from (select pid from pg_stat_activity
        where datname = current_database() and application_name = 'bank' order by random() limit 3) x`)
    },
  }
  // Each kind once, then by the dice.
  const planned = Object.keys(kinds)
  while (!isOver() || planned.length > 0) {
    const kind = planned.shift() ?? pick(Object.keys(kinds), random)
    await kinds[kind]!(Math.floor(random() * workers.length))
    faults[kind] = (faults[kind] ?? 0) + 1
    await new Promise((resolve) => setTimeout(resolve, 300 * random()))
  }
}

async function watchSum(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    expect(await sumOfBalances(pool)).toBe(SUM)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function count(from: string): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(`select count(*)::int n from ${from}`)
  return rows[0]!.n
}
const unfinished = () => count('oncebox.work where parked is null')
const sessions = () => count(`pg_stat_activity where datname = current_database() and application_name = 'bank'`)

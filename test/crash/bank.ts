/** A bank to check exactly-once effects with: accounts whose sum never changes, and entries that explain every balance. */
import type pg from 'pg'
import { createBox, type Incoming } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type { ConsumerSpec } from './arena.js'

export const ACCOUNTS = 100
const OPENING = 1_000
export const ATTEMPTS = 8

const options = {
  leaseMs: 1_000,
  concurrency: 2,
  group: { messages: 20, ms: 200 },
  retry: { attempts: ATTEMPTS, baseMs: 20, maxMs: 200 },
}
export const CONSUMERS: ConsumerSpec[] = [
  { name: 'balance', options: { ...options, retryBy: 'box' } },
  { name: 'history', options: { ...options, order: 'key', onDead: 'skip' } },
  { name: 'receipt', options },
]

export interface Transfer {
  id: string
  from: number
  to: number
  amount: number
  /** Its place among the transfers from its account. */
  seq: number
}

export function toMessage({ id, ...data }: Transfer): Incoming {
  return { id, type: 'transfer', key: `account-${data.from}`, data }
}

export async function openBank(pool: pg.Pool): Promise<void> {
  await pool.query(`
    create table account (id int primary key, balance bigint not null);
    create table entry (n bigserial primary key, consumer text, id text, source int, target int, amount int, seq int, attempt int)`)
  await pool.query(`insert into account select i, ${OPENING} from generate_series(0, ${ACCOUNTS - 1}) i`)
  const box = createBox({ db: fromPg(pool) })
  for (const { name, options: own } of CONSUMERS) box.consumer(name, { transfer: () => {} }, own)
  await box.migrate()
}

/** Holds in every snapshot, whatever is going on. */
export async function sumOfBalances(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ sum: string }>('select sum(balance) sum from account')
  return Number(rows[0]!.sum)
}
export const SUM = ACCOUNTS * OPENING

interface Entry {
  id: string
  source: number
  target: number
  amount: number
  seq: number
  attempt: number
}

/** Everything that is wrong, once nothing is left to do. `ledger` is what was acknowledged. */
export async function audit(pool: pg.Pool, ledger: ReadonlyMap<string, Transfer>): Promise<string[]> {
  const wrong: string[] = []
  const all = async <T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> =>
    (await pool.query<T>(text, values)).rows

  const sum = await sumOfBalances(pool)
  if (sum !== SUM) wrong.push(`the balances sum up to ${sum}, not ${SUM}`)

  for (const { name: consumer } of CONSUMERS) {
    const entries = await all<Entry>('select * from entry where consumer = $1 order by n', [consumer])
    const parked = await all<{ id: string; parked: string; attempts: number }>(
      'select id, parked, attempts from oncebox.work where consumer = $1',
      [consumer],
    )
    const received = await all<{ id: string }>('select id from oncebox.message where consumer = $1', [consumer])
    wrong.push(
      ...auditEntries(consumer, entries, ledger),
      ...auditFates(consumer, entries, parked, ledger),
      ...(received.length === ledger.size
        ? []
        : [`${consumer}: ${received.length} received, ${ledger.size} acknowledged`]),
    )
    if (consumer === 'balance') wrong.push(...(await auditBalances(pool, entries)))
    if (consumer === 'history') wrong.push(...auditOrder(entries))
  }

  const leftovers = await all<{ what: string }>(`
    select 'a row in open_group' what from oncebox.open_group
    union all select 'a claimed message' from oncebox.work where token is not null
    union all select 'a claimed lane' from oncebox.lane where token is not null
    union all select 'in quarantine: ' || reason from oncebox.quarantine
    union all select 'a session ' || coalesce(state, '') from pg_stat_activity
      where datname = current_database() and (application_name = 'bank' or state like 'idle in transaction%')
    union all select 'more attempts than allowed: ' || id from oncebox.attempt group by consumer, id having count(*) > ${ATTEMPTS}`)
  return [...wrong, ...leftovers.map(({ what }) => what)]
}

/** What was done is what was ordered. */
function auditEntries(consumer: string, entries: Entry[], ledger: ReadonlyMap<string, Transfer>): string[] {
  return entries.flatMap(({ id, source, target, amount, seq }) => {
    const order = ledger.get(id)
    if (!order) return [`${consumer}: ${id} was never acknowledged and has an effect`]
    const same = order.from === source && order.to === target && order.amount === amount && order.seq === seq
    return same ? [] : [`${consumer}: ${id} was changed on its way`]
  })
}

/** Exactly one effect, or dead; never both, never neither. */
function auditFates(
  consumer: string,
  entries: Entry[],
  work: { id: string; parked: string | null; attempts: number }[],
  ledger: ReadonlyMap<string, Transfer>,
): string[] {
  const effects = new Map<string, number>()
  for (const { id } of entries) effects.set(id, (effects.get(id) ?? 0) + 1)
  const dead = new Set(work.map(({ id }) => id))
  const wrong = work.flatMap(({ id, parked, attempts }) => [
    ...(parked === 'dead' ? [] : [`${consumer}: ${id} is ${parked ?? 'pending'}`]),
    ...(attempts <= ATTEMPTS ? [] : [`${consumer}: ${id} was tried ${attempts} times`]),
  ])
  for (const id of ledger.keys()) {
    const fates = (effects.get(id) ?? 0) + (dead.has(id) ? 1 : 0)
    if (fates !== 1)
      wrong.push(`${consumer}: ${id} has ${effects.get(id) ?? 0} effects${dead.has(id) ? ' and is dead' : ''}`)
  }
  return wrong
}

/** Each balance is what its entries make it. */
async function auditBalances(pool: pg.Pool, entries: Entry[]): Promise<string[]> {
  const expected = Array.from({ length: ACCOUNTS }, () => OPENING)
  for (const { source, target, amount } of entries) {
    expected[source]! -= amount
    expected[target]! += amount
  }
  const { rows } = await pool.query<{ id: number; balance: string }>('select id, balance from account order by id')
  return rows
    .filter(({ id, balance }) => Number(balance) !== expected[id])
    .map(({ id, balance }) => `account ${id} has ${balance}, its entries make ${expected[id]}`)
}

function auditOrder(entries: Entry[]): string[] {
  const last = new Map<number, number>()
  return entries.flatMap(({ source, seq, id }) => {
    const before = last.get(source) ?? -1
    last.set(source, Math.max(before, seq))
    return seq > before ? [] : [`history: ${id} came after ${before} of account ${source}`]
  })
}

/** Registry: tells receivers in other processes which consumers there are and what they take. */
import { hostname } from 'node:os'
import { ENDLESS, type Turn } from '../lifecycle.js'
import { hintAt } from '../nearest.js'
import { sqlState } from '../postgres/errors.js'
import { KNOWN_CONSUMERS, REGISTER, RENEW, UNROUTED, type ConsumerRow } from '../postgres/sql/registry.js'
import { BEGIN_WATERMARKS, CONSUMERS } from '../postgres/sql/retain.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import { asReceiverSeesIt, type ConsumerDeclaration } from './consumer.js'
import { NO_CONSUMER } from './quarantine.js'
import { createRelease } from './release.js'

/** Writes consumers and their subscriptions, and warns where another process has said something else. */
export async function register(runtime: Runtime, consumers: readonly ConsumerDeclaration[]): Promise<void> {
  if (consumers.length === 0) return
  const declared = JSON.stringify({ host: hostname(), pid: process.pid, at: new Date().toISOString() })
  const rows = consumers.map((consumer) => ({ ...asReceiverSeesIt(consumer), declared }))
  for (const row of await runtime.db.run(REGISTER, rows)) {
    const consumer = consumers.find(({ name }) => name === row.name)!
    warnOfDifferences(runtime, consumer, row)
  }
  const names = consumers.map(({ name }) => name)
  await runtime.db.run(BEGIN_WATERMARKS, { consumers: names, wait: '1s' }).catch((error: unknown) => {
    if (sqlState(error) !== '55P03') throw error
  })
}

/** A process that runs says again and again what its consumers promise: others go by it while it does. */
export async function renew(runtime: Runtime, consumers: readonly ConsumerDeclaration[]): Promise<void> {
  if (consumers.length > 0) await runtime.db.run(RENEW, consumers.map(asReceiverSeesIt)) // prettier-ignore
}

/** What changes a promise to receivers, as they see it. */
function warnOfDifferences(runtime: Runtime, { name, options }: ConsumerDeclaration, row: ConsumerRow): void {
  const here = {
    order: options.order,
    retainMs: options.retainMs,
    untimed: options.untimed,
    identity: options.identity !== undefined,
  }
  const there: typeof here = {
    order: row.ordered === 'true' ? 'key' : 'none',
    retainMs: Number(row.retain_ms),
    untimed: row.untimed,
    identity: row.identity === 'true',
  }
  const declared = row.declared ? readJson(row.declared) : {}
  for (const option of ['order', 'retainMs', 'untimed', 'identity'] as const) {
    if (here[option] === there[option]) continue
    runtime.log.warn(
      { consumer: name, option, here: here[option], there: there[option], declared },
      `another process declared consumer ${name} with another ${option}; ${CONSEQUENCE[option]}`,
    )
  }
}

const CONSEQUENCE = {
  order: 'it is ordered until no process has said so for five minutes',
  retainMs: 'retention goes by the one that was declared last, and in each process by its own if that is longer',
  untimed: 'processes that have not declared it go by the one that was declared last',
  identity: 'receivers without the function refuse its messages until no process has had one for five minutes',
} as const

/** The registered consumers that this process has not declared, and how long they remember. */
export async function consumersElsewhere(
  { db }: Runtime,
  declared: readonly string[],
): Promise<{ readonly name: string; readonly retainMs: number }[]> {
  return (await db.run(CONSUMERS, null))
    .filter(({ name, retain_ms }) => retain_ms !== null && !declared.includes(name))
    .map(({ name, retain_ms }) => ({ name, retainMs: Number(retain_ms) }))
}

/** Of these names those that no process has declared so far, each with a hint at what was meant. */
export async function unknownConsumers(
  { db }: Runtime,
  names: readonly string[],
  declared: readonly string[],
): Promise<{ readonly name: string; readonly hint: string }[]> {
  const strange = names.filter((name) => name !== NO_CONSUMER && !declared.includes(name))
  if (strange.length === 0) return []
  const registered = (await db.run(KNOWN_CONSUMERS, strange)).map(({ name }) => name)
  const known = [...new Set([...declared, ...registered])]
  return strange
    .filter((name) => !known.includes(name))
    .map((name) => ({ name, hint: hintAt(name, known, `there is ${known.join(', ') || 'none'}`) }))
}

/**
 * Messages that nobody wanted when they came, and that somebody takes now, go through the front door again, in the order in
 * which they came. Answers how many left the quarantine for it. What is left when the turn is over waits for the next start.
 */
export async function releaseUnrouted(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  types: readonly string[],
  { goesOn }: Turn = ENDLESS,
): Promise<number> {
  const releasing = createRelease(runtime, { consumers, by: 'start' })
  let released = 0
  let after = '0'
  while (types.length > 0 && goesOn()) {
    const rows = await runtime.db.run(UNROUTED, { types, after })
    if (rows.length === 0) break
    after = rows.at(-1)!.n
    released += (await releasing(rows.map(({ n }) => ({ n, state: 'quarantined' })))).removed
  }
  return released
}

/**
 * Doctor: looks at a box and its server, and says what is wrong, why it matters and what mends it.
 *
 * One family after the other, in a transaction of its own for each question, so that the doctor takes one connection and little
 * of the server. A family that fails is a finding itself, and the others go on. Without a schema there is nothing else to look at.
 */
import type { ConsumerDeclaration } from '../../inbox/consumer.js'
import { plainWords } from '../../failure.js'
import { isUnavailable, sqlState } from '../../postgres/errors.js'
import type { Runtime } from '../../runtime.js'
import type { Family, Finding, Look, Severity } from './check.js'
import { CONNECTIONS } from './connections.js'
import { DEAD } from './dead.js'
import { resolveLimits, type DoctorOptions } from './options.js'
import { OUTBOX } from './outbox.js'
import { PINS } from './pins.js'
import { QUARANTINE } from './quarantine.js'
import { RIGHTS } from './rights.js'
import { DRIFT, SCHEMA } from './schema.js'
import { SEQUENCES } from './sequences.js'
import { SETTINGS } from './settings.js'
import { STORAGE } from './storage.js'
import { WORK } from './work.js'

export type { Finding } from './check.js'
export type { DoctorOptions } from './options.js'

/** In the order of the page. */
export const FAMILIES: readonly Family[] = [
  ...[SCHEMA, DRIFT, SEQUENCES, RIGHTS, SETTINGS, CONNECTIONS, WORK, DEAD, OUTBOX, QUARANTINE, STORAGE, PINS],
]

/** The one finding that belongs to no family. */
export const FAILED = {
  code: 'check-failed',
  severity: 'note',
  why: 'What the doctor could not look at may be ill: its other findings say nothing of it.',
} as const

const BY_SEVERITY: readonly Severity[] = ['serious', 'warning', 'note']

export async function doctor(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  options: DoctorOptions = {},
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for await (const found of examine(runtime, consumers, options)) findings.push(...found)
  return worstFirst(findings)
}

/** The same as it goes: what each family has found. */
export async function* examine(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  options: DoctorOptions = {},
): AsyncGenerator<readonly Finding[]> {
  const limits = resolveLimits(options)
  const { db } = runtime
  const look: Look = {
    runtime,
    consumers,
    limits,
    ask: (statement, param) =>
      db.transaction(async (tx) => {
        await db.driver.query(`set local statement_timeout = ${limits.timeoutMs}`, [], tx)
        return db.run(statement, param, tx)
      }),
  }
  for (const family of FAMILIES) {
    const found = await family.examine(look).catch((error: unknown) => failed(family, error))
    yield found
    if (family === SCHEMA && found.some(({ severity }) => severity === 'serious')) return
  }
}

export function worstFirst(findings: readonly Finding[]): readonly Finding[] {
  return [...findings].sort((one, other) => BY_SEVERITY.indexOf(one.severity) - BY_SEVERITY.indexOf(other.severity))
}

/** A database that is not there has no diagnosis. */
function failed({ name }: Family, error: unknown): Finding[] {
  if (!(error instanceof Error) || isUnavailable(error)) throw error
  const state = sqlState(error) ?? ''
  const fix =
    state === '42501'
      ? 'run the doctor under the viewer’s or the worker’s role of rolesSql(), or as the owner of the schema'
      : state === '57014'
        ? 'await box.admin.doctor({ timeoutMs: 60_000 })'
        : 'read the error; if it names a table or a function of the schema, see what else the doctor says of the schema'
  const what = `the doctor could not look at ${name}: ${plainWords(error)}`
  return [{ ...FAILED, what, figures: { checks: name, ...(state && { sqlstate: state }) }, fix }]
}

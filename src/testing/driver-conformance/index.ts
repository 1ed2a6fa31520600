/**
 * What every driver must keep, as cases for any test runner:
 *
 *     for (const { name, run } of driverConformance({ open })) test(name, run)
 *
 * Each case opens the driver anew and works in tables of its own. A case that the client cannot pass by its nature
 * is left out by `capabilities`, so that what is missing stands in the test file.
 */
import assert from 'node:assert/strict'
import { boolean, resolve } from '../../options.js'
import type { Driver } from '../../postgres/driver.js'
import { Bench } from './bench.js'
import { failures } from './failures.js'
import { lending } from './lending.js'
import { listening } from './listening.js'
import { losses } from './losses.js'
import { silences } from './silences.js'
import { statements } from './statements.js'
import type { ConformanceCase, DriverCapabilities, DriverConformance } from './suite.js'
import { together } from './together.js'
import { transactions } from './transactions.js'

export type { ConformanceCase, DriverCapabilities, DriverConformance, DriverFaults, DriverUnderTest } from './suite.js'

const CAPABILITIES = {
  parallel: boolean(true),
  commitWarnings: boolean(true),
  scripts: boolean(true),
  faults: boolean(true),
  lend: boolean(true),
  listen: boolean(true),
  silent: boolean(true),
  together: boolean(true),
}

/** What a driver has that has the capability. */
const MEMBERS = {
  lend: ['lend'],
  listen: ['listen'],
  silent: ['silentMs', 'hangUp'],
  together: ['together', 'lendTogether'],
} as const satisfies Partial<Record<keyof DriverCapabilities, readonly (keyof Driver<never>)[]>>

export function driverConformance<Tx, TxIn = Tx>(suite: DriverConformance<Tx, TxIn>): ConformanceCase[] {
  const capabilities = resolve('driverConformance: capabilities', suite.capabilities ?? {}, CAPABILITIES)
  const cases: { name: string; needs: (keyof DriverCapabilities)[]; run: (bench: Bench<Tx, TxIn>) => Promise<void> }[] =
    []
  for (const topic of [statements, transactions, failures, losses, silences, listening, lending, together]) {
    topic<Tx, TxIn>((name, run, ...needs) => cases.push({ name, run, needs }))
  }

  return cases
    .filter(({ needs }) => needs.every((need) => capabilities[need]))
    .map(({ name, run, needs }) => ({
      name,
      async run() {
        const subject = await suite.open()
        const bench = new Bench(subject, capabilities)
        try {
          checkMembers(subject.driver, needs)
          await bench.create()
          await run(bench)
        } finally {
          await bench.clean()
          await subject.close()
        }
      },
    }))
}

/** A driver that lacks something passes nothing by that: its test has to say so. */
function checkMembers(
  driver: Partial<Record<keyof Driver<never>, unknown>>,
  needs: readonly (keyof DriverCapabilities)[],
): void {
  for (const need of needs) {
    const members: readonly (keyof Driver<never>)[] = need in MEMBERS ? MEMBERS[need as keyof typeof MEMBERS] : []
    const missing = members.find((member) => !driver[member])
    assert.ok(
      missing === undefined,
      `the driver has no \`${missing}\`: add it, or say that it is missing: \`capabilities: { ${need}: false }\``,
    )
  }
}

/**
 * What every driver must keep, as cases for any test runner:
 *
 *     for (const { name, run } of driverConformance({ open })) test(name, run)
 *
 * Each case opens the driver anew and works in tables of its own. A case that the client cannot pass by its nature
 * is left out by `capabilities`, so that what is missing stands in the test file.
 */
import { boolean, resolve } from '../../options.js'
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
}

export function driverConformance<Tx, TxIn = Tx>(suite: DriverConformance<Tx, TxIn>): ConformanceCase[] {
  const capabilities = resolve('driverConformance: capabilities', suite.capabilities ?? {}, CAPABILITIES)
  const cases: { name: string; needs: (keyof DriverCapabilities)[]; run: (bench: Bench<Tx, TxIn>) => Promise<void> }[] =
    []
  for (const topic of [statements, transactions, failures, losses, silences, listening, lending, together]) {
    topic<Tx, TxIn>((name, run, ...needs) => cases.push({ name, run, needs }))
  }

  return cases
    .filter(({ needs }) => needs.every((need) => capabilities[need]))
    .map(({ name, run }) => ({
      name,
      async run() {
        const subject = await suite.open()
        const bench = new Bench(subject, capabilities)
        try {
          await bench.create()
          await run(bench)
        } finally {
          await bench.clean()
          await subject.close()
        }
      },
    }))
}

/**
 * How checks are declared. A family asks the database once, or a few times, and its checks judge what came back:
 *
 *     const FULL = check<Facts>({
 *       code: 'disk-full', severity: 'serious',
 *       why: 'Without room on the disk nothing is stored.',
 *       find: ({ free }) => free > 0 ? [] : [{ what: 'the disk is full', figures: { free }, fix: 'make room' }],
 *     })
 *
 * To add one: write it beside its like, name it in the `checks` of its family, and give it an entry in docs/doctor.md, which a
 * test compares with the declarations; and a test in test/doctor that makes the box ill and sees it named.
 */
import type { ConsumerDeclaration } from '../../inbox/consumer.js'
import type { Statement } from '../../postgres/statement.js'
import type { Runtime } from '../../runtime.js'
import type { DoctorLimits } from './options.js'

/** `serious`: messages wait, get lost or are handled twice, or soon will. `note`: good to know, and what could not be seen. */
export type Severity = 'serious' | 'warning' | 'note'

/** What the doctor has found. */
export interface Finding {
  /** What kind of finding it is, as docs/doctor.md lists them. */
  readonly code: string
  readonly severity: Severity
  /** What is the matter, with names and numbers. */
  readonly what: string
  /** Why it matters. */
  readonly why: string
  /** The figures behind it. */
  readonly figures: Readonly<Record<string, number | string>>
  /** The call, command or statement that mends it. */
  readonly fix: string
}

export interface Found extends Pick<Finding, 'what' | 'figures' | 'fix'> {
  /** Where it is not that of the check. */
  readonly severity?: Severity
}

/** What checks are given. */
export interface Look {
  readonly runtime: Runtime
  /** The consumers that this process has declared. */
  readonly consumers: readonly ConsumerDeclaration[]
  readonly limits: DoctorLimits
  /** Runs one statement: uncompiled, and within its time. */
  ask<In, Out>(statement: Statement<In, Out>, param: In): Promise<readonly Out[]>
}

export interface Check<Facts> {
  readonly code: string
  readonly severity: Severity
  readonly why: string
  find(facts: Facts, look: Look): readonly Found[]
}

export function check<Facts>(declared: Check<Facts>): Check<Facts> {
  return declared
}

export interface Family {
  /** What it looks at, for people. */
  readonly name: string
  readonly checks: readonly Pick<Check<never>, 'code' | 'severity' | 'why'>[]
  examine(look: Look): Promise<Finding[]>
}

export function family<Facts>(
  name: string,
  read: (look: Look) => Promise<Facts>,
  checks: readonly Check<Facts>[],
): Family {
  return {
    name,
    checks,
    async examine(look) {
      const facts = await read(look)
      return checks.flatMap(({ code, severity, why, find }) =>
        find(facts, look).map((found) => ({
          code,
          severity: found.severity ?? severity,
          what: found.what,
          why,
          figures: found.figures,
          fix: found.fix,
        })),
      )
    },
  }
}

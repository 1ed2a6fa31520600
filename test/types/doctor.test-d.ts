/** What of the doctor compiles. */
import { expectTypeOf, test } from 'vitest'
import type { Admin, DoctorOptions, Finding, MessageMap } from 'oncebox'

declare const admin: Admin<MessageMap>

test('the doctor answers findings, and takes limits', () => {
  expectTypeOf(admin.doctor()).resolves.toEqualTypeOf<readonly Finding[]>()
  expectTypeOf<Finding['severity']>().toEqualTypeOf<'serious' | 'warning' | 'note'>()
  expectTypeOf<Finding['figures']>().toEqualTypeOf<Readonly<Record<string, number | string>>>()
  expectTypeOf(admin.doctor).parameter(0).toEqualTypeOf<DoctorOptions | undefined>()
  void admin.doctor({ waitingMs: 1, lagMs: 1, deadMs: 1, transactionMs: 1, skewMs: 1, timeoutMs: 1 })
  // @ts-expect-error there is no such limit
  void admin.doctor({ patience: 1 })
})

test('a finding cannot be changed', () => {
  const finding = {} as Finding
  // @ts-expect-error it is read-only
  finding.severity = 'note'
})

import { expectTypeOf, test } from 'vitest'
import type { Admin, ConsumerInfo, MessageMap, Removal } from 'oncebox'

declare const admin: Admin<MessageMap>

test('consumers are listed, and removed by name', () => {
  expectTypeOf(admin.consumers()).resolves.toEqualTypeOf<readonly ConsumerInfo[]>()
  expectTypeOf<ConsumerInfo['seenAt']>().toEqualTypeOf<Date | undefined>()
  expectTypeOf(admin.removeConsumer('c', { discard: true, forget: false, by: 'me', reason: 'r' })).resolves.toBeNumber()
  expectTypeOf<Removal>().toEqualTypeOf<{ by?: string; reason?: string; discard?: boolean; forget?: boolean }>()
  // @ts-expect-error there is no such option
  void admin.removeConsumer('c', { force: true })
})

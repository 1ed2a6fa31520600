import { expectTypeOf, test } from 'vitest'
import type { Admin, ConsumerInfo, Entry, FailedAttempt, Hooks, MessageMap, Removal, Takeover } from 'oncebox'

declare const admin: Admin<MessageMap>

test('consumers are listed, and removed by name', () => {
  expectTypeOf(admin.consumers()).resolves.toEqualTypeOf<readonly ConsumerInfo[]>()
  expectTypeOf<ConsumerInfo['seenAt']>().toEqualTypeOf<Date | undefined>()
  expectTypeOf(admin.removeConsumer('c', { discard: true, forget: false, by: 'me', reason: 'r' })).resolves.toBeNumber()
  expectTypeOf<Removal>().toEqualTypeOf<{ by?: string; reason?: string; discard?: boolean; forget?: boolean }>()
  // @ts-expect-error there is no such option
  void admin.removeConsumer('c', { force: true })
})

test('ids are marked as handled: text or objects, in anything to iterate over', () => {
  expectTypeOf(admin.markHandled('c', ['a', { id: 'b', source: 's', at: new Date() }])).resolves.toBeNumber()
  expectTypeOf(admin.markHandled('c', new Set(['a']), { source: 's', type: 't', by: 'me' })).resolves.toBeNumber()
  expectTypeOf(admin.markHandled('c', (async function* () { yield 'a' })())).resolves.toBeNumber() // prettier-ignore
  // @ts-expect-error an id is text
  void admin.markHandled('c', [7])
  // @ts-expect-error there is no such property
  void admin.markHandled('c', [{ id: 'a', when: new Date() }])
})

test('a hook is told of what was taken over, by id', () => {
  expectTypeOf<NonNullable<Hooks<MessageMap>['takenOver']>>().parameter(0).toEqualTypeOf<Takeover>()
  expectTypeOf<Takeover['messages'][number]>().toEqualTypeOf<{
    readonly id: string
    readonly source: string
    readonly type: string
  }>()
})

test('failures are named by fingerprint, one or several, and what blocks a key by true alone', () => {
  void admin.messages({ fingerprint: '9f3a61c2b04d', blocking: true })
  void admin.retry({ fingerprint: ['9f3a61c2b04d', '0123456789ab'] })
  // @ts-expect-error what blocks nothing is all the rest
  void admin.messages({ blocking: false })
  expectTypeOf<NonNullable<Entry<MessageMap>['attempts']>[number]>().toEqualTypeOf<FailedAttempt>()
  expectTypeOf<FailedAttempt['ms']>().toEqualTypeOf<number | undefined>()
  expectTypeOf<FailedAttempt['worker']>().toEqualTypeOf<string | undefined>()
})

/** Which message of an id is asked for. */
import { expect, test } from 'vitest'
import { identityOf } from '../../ui/src/logic/identity.js'
import { fate } from './fates.js'

test('a message without a source is asked for by its empty source, for another producer may have its id', () => {
  expect(identityOf(fate({ source: '' }))).toEqual({ id: 'pay-1', source: '', consumer: 'update-balance' })
  expect(identityOf(fate({ n: '7' }))).toEqual({ id: 'pay-1', source: 'shop', consumer: 'update-balance', n: '7' })
})

/** Who gets in at `oncebox dashboard`. */
import { expect, test } from 'vitest'
import { authorizeBy } from '../../src/cli/dashboard/who.js'

const token = 'a token of many characters'
const ask = (name: string, word: string): unknown => {
  const authorization = `Basic ${Buffer.from(`${name}:${word}`).toString('base64')}`
  return authorizeBy({ token, by: 'me' })(new Request('http://ops.example.com', { headers: { authorization } }))
}

test('a name is for the audit: one that is too long to be looked through is left out, and lets nobody in', () => {
  expect(ask('ada', token)).toEqual({ may: 'all', by: 'ada' })
  expect(ask('postgres://ada:hunter2@db', token)).not.toEqual(expect.objectContaining({ by: expect.stringContaining('hunter2') as string })) // prettier-ignore
  expect(ask('a'.repeat(10_000), token)).toEqual({ may: 'all', by: 'token' })
  expect(ask('a'.repeat(10_000), 'another')).toMatchObject({ status: 401 })
})

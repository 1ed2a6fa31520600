/** Copies of a message: what they say is what was received. */
import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { asJson, asTest } from '../../ui/src/logic/copies.js'
import { fate } from './fates.js'

const BODY = '{"account":"ada","cents":9007199254740993,"note":"it’s \\"5\\" \\\\ \\u202e"}'

const dead = fate({
  key: 'ada',
  time: '2026-11-15T14:22:17.981Z',
  state: 'dead',
  headers: { 'x-request-id': 'req-1', traceparent: '00-1-2-01' },
  failure: { name: 'GatewayTimeout', message: 'no answer\nwithin 10 ms' },
})

test('the copied test is the one beside this, which compiles with all tests', () => {
  const copied = readFileSync(new URL('./copied/message.ts', import.meta.url), 'utf8')
  expect(asTest({ fate: dead, body: BODY })).toBe(copied)
})

test('as JSON, numbers are as they were written', () => {
  const text = asJson({ fate: dead, body: BODY })
  expect(text).toContain('9007199254740993')
  expect(JSON.parse(text)).toMatchObject({
    id: 'pay-1',
    type: 'payment.received',
    key: 'ada',
    data: { account: 'ada' },
  })
})

test('what could not be decoded is copied as its bytes', () => {
  expect(JSON.parse(asJson({ fate: fate(), body: undefined, base64: '/w==' }))).toMatchObject({ base64: '/w==' })
  expect(asTest({ fate: fate(), body: undefined, base64: '/w==' })).toContain(`Buffer.from('/w==', 'base64')`)
})

test.each(["'); process.exit(1); ('", '*/ alert(1) /*', '\u2028\u2029', '`${1}`', '\ud800', '\\', '\u202e'])(
  'an id or an error like %j stays within its text',
  (hostile) => {
    const failure = { name: 'E', message: hostile }
    const text = asTest({ fate: fate({ id: hostile, failure, state: 'dead' }), body: JSON.stringify(hostile) })
    const [, literal] = /^ {4}id: ('.*'),$/m.exec(text)!
    expect(runInNewContext(literal!)).toBe(hostile)
    const [, body] = /^ {4}body: ('.*'),$/m.exec(text)!
    expect(JSON.parse(runInNewContext(body!) as string)).toBe(hostile)
    expect(text).not.toMatch(/[\u2028\u202e]/)
  },
)

test('a test of what was redacted, or could not be seen, says so', () => {
  expect(asTest({ fate: fate({ body: { bytes: 2, whole: true, redacted: true } }), body: '{}' })).toContain('redacted')
  expect(asTest({ fate: fate(), body: undefined })).toContain('put it in')
})

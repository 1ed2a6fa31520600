/** Handlers that misuse what they are given, or do not wait for it: their attempt fails, and their process lives. */
import { expect, test } from 'vitest'
import { scratchDatabase } from '../support/postgres.js'
import { spawnChild } from '../support/processes.js'

const CHILD = new URL('./unawaited-child.mjs', import.meta.url)
const HANDLED = { state: 'handled', code: null }
const TWICE = { state: 'dead', code: 'OPTION_INVALID' }
const UNAWAITED = { state: 'dead', code: 'UNAWAITED_CALL' }

test.for<[name: string, what: string, expected: object]>([
  ['both', 'two effects, awaited one after the other, are called', { ...HANDLED, calls: ['a', 'b'] }],
  ['reversed', 'two effects, awaited in another order, are called', { ...HANDLED, calls: ['a', 'b'] }],
  ['wrapped', 'two effects in functions that are begun together are called', { ...HANDLED, calls: ['a', 'b'] }],
  ['swallowed', 'an effect behind one whose rejection is caught is called', { ...HANDLED, calls: ['a', 'b'] }],
  ['all', 'effects that are awaited together are called', { ...HANDLED, calls: ['a', 'b', 'c'] }],
  ['twice', 'two effects of one name, at once: none is called', { ...TWICE, calls: [] }],
  ['again', 'two effects of one name, one after the other: the second is refused', { ...TWICE, calls: ['a1'] }],
  ['quiet', 'two effects of one name, whose error is caught, fail the attempt', { ...TWICE, calls: [] }],
  ['effect', 'an effect that is not awaited is not called', { ...UNAWAITED, calls: [] }],
  ['wrong', 'an effect that is refused and not awaited fails the attempt', { ...UNAWAITED, cause: 'OPTION_INVALID' }],
  ['send', 'an event that waits for its schema and is not awaited fails the attempt', { ...UNAWAITED, sent: 0 }],
  ['bad', 'an event that its schema refuses unseen fails the attempt', { ...UNAWAITED, cause: 'MESSAGE_INVALID' }],
  ['caught', 'an event whose refusal is caught is the handler’s business', { ...HANDLED, sent: 0 }],
  ['throws', 'a handler that throws is dead of its own error', { state: 'dead', code: null, calls: [] }],
  ['each', 'statements within forEach(async …) fail the attempt', { state: 'dead', code: 'UNAWAITED_QUERY' }],
  [
    'blocked',
    'a statement that is not awaited has no longer than its handler',
    { state: 'dead', code: 'HANDLER_TIMEOUT' },
  ],
  ['late', 'calls after the handler has returned do nothing', { ...HANDLED, calls: [], sent: 0 }],
])('%s: %s', { timeout: 240_000 }, async ([name, , expected]) => {
  for (const mode of ['stored', 'inline']) {
    const database = await scratchDatabase(`unawaited_${name}_${mode}`)
    const child = spawnChild(CHILD, { env: { DATABASE: database.url, MODE: `${name}/${mode}` } })
    try {
      expect(await child.next('report')).toMatchObject({ unhandled: 0, ...expected })
      child.send('stop')
      expect(await child.exited).toEqual({ code: 0, signal: null })
    } finally {
      await child.kill()
      await database.close()
    }
  }
})

/** What the copied test imports. */
import { deepStrictEqual } from 'node:assert'
import type { Handlers, MessageMap } from 'oncebox'

export const handlers: Handlers<MessageMap, unknown> = {
  'payment.received': (message) => {
    const { account } = message.data as { account: string }
    deepStrictEqual([account, message.key, message.headers['x-request-id']], ['ada', 'ada', 'req-1'])
  },
}

import { expect, test } from 'vitest'
import { createTestBox } from 'oncebox/testing'
import { handlers } from './handlers.js' // those of update-balance

// It is dead there: GatewayTimeout: no answer within 10 ms
test('update-balance handles payment.received pay-1', async () => {
  await using box = await createTestBox()
  box.consumer('update-balance', handlers)

  const [outcome] = await box.deliver({
    id: 'pay-1',
    source: 'shop',
    type: 'payment.received',
    key: 'ada',
    time: '2026-11-15T14:22:17.981Z',
    headers: { 'x-request-id': 'req-1' },
    body: '{"account":"ada","cents":9007199254740993,"note":"it’s \\"5\\" \\\\ \\u202e"}',
  })
  expect(outcome).toMatchObject({ ack: true })
  await box.waitFor('pay-1', 'handled')
})

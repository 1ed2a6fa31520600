/** Fates, as the server answers them. */
import type { Fate } from '../../src/dashboard/answers/index.js'

export function fate(change: Partial<Fate> = {}): Fate {
  return {
    consumer: 'update-balance',
    source: 'shop',
    id: 'pay-1',
    type: 'payment.received',
    state: 'handled',
    attempts: 1,
    receivedAt: '2026-11-15T14:22:18.000Z',
    correlationId: 'pay-1',
    body: { bytes: 2, text: '{}', whole: true },
    history: [],
    effects: [],
    blocked: false,
    timeline: [],
    ...change,
  }
}

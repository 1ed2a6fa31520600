/** The payments service: charges a card at a gateway, and books the charge. */
import { createBox, defineMessages } from 'oncebox'
import { z } from 'zod'

const invoice = z.object({ invoice: z.string(), cents: z.int().positive() })
/** How long a claim outlives its worker. Shorter than the default, so that nobody has to wait for half a minute. */
export const LEASE_MS = 5_000

const messages = defineMessages({ 'invoice.due': invoice, 'invoice.due.abroad': invoice })

/**
 * @param {import('../database.mjs').Database} database
 * @param {{ gateway: string, afterCall?: (invoice: string) => unknown }} options
 */
export function createPayments(database, { gateway, afterCall }) {
  const box = createBox({ db: database.driver, messages, schema: 'oncebox_example_payments' })

  /** @param {z.infer<typeof invoice>} data @param {string} idempotencyKey @param {AbortSignal} signal */
  const charge = async (data, idempotencyKey, signal) => {
    const headers = { 'idempotency-key': idempotencyKey }
    const response = await fetch(gateway, { method: 'POST', headers, body: JSON.stringify(data), signal })
    const { chargeId } = /** @type {{ chargeId: string }} */ (await response.json())
    afterCall?.(data.invoice)
    return chargeId
  }
  const BOOK = 'insert into oncebox_example_payments.charge (invoice, charge_id) values ($1, $2)'

  box.consumer(
    'charge-card',
    {
      // The gateway honours the key, so an unknown outcome is no problem: the call is made again, with the same key.
      'invoice.due': async ({ data }, { tx, effect }) => {
        const chargeId = await effect('charge', (call) => charge(data, call.idempotencyKey, call.signal))
        await tx.query(BOOK, [data.invoice, chargeId])
      },
      // As if it did not: an unknown outcome waits for a person.
      'invoice.due.abroad': async ({ data }, { tx, effect }) => {
        const call = { onUnknown: /** @type {const} */ ('park') }
        const chargeId = await effect('charge', (how) => charge(data, how.idempotencyKey, how.signal), call)
        await tx.query(BOOK, [data.invoice, chargeId])
      },
    },
    { leaseMs: LEASE_MS },
  )
  return box
}

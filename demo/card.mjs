/** Calls the card gateway (gateway.mjs). Throws if it does not answer, and then nobody knows whether it has charged. */
export async function chargeCard(gateway, account, order, { idempotencyKey, signal } = {}) {
  const response = await fetch(`${gateway}/charges/${account}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(idempotencyKey && { 'idempotency-key': idempotencyKey }) },
    body: JSON.stringify({ order: order.id, cents: order.cents }),
    signal,
  })
  if (!response.ok) throw new Error(`the gateway answered ${response.status}`)
  return response.json()
}

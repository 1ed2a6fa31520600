/** The table of clients, of `npm run bench:clients` and of the page. */
import { number, table } from './charts.mjs'

export function clientTable({ clients }) {
  const rows = clients.map(({ client, version, own, lent, over, target, bind, cpu, rate, ofPg }) => {
    const goal = over <= target ? `≤ ${target} reached` : `≤ ${target} **missed**`
    const rates = `${number(rate.median)} (${number(rate.min)}–${number(rate.max)})`
    return [`${client} ${version}`, own, lent, `${over}, ${goal}`, bind, cpu, rates, ofPg.toFixed(2)]
  })
  return table(
    ['client', 'own, µs', 'lent, µs', 'over its own, µs', 'bind, µs', 'handled, µs', 'handled per second', 'of pg'],
    rows,
  )
}

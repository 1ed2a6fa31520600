/** The table of clients, of `npm run bench:clients` and of the page. */
import { number, table } from './charts.mjs'

export function clientTable({ clients }) {
  const rows = clients.map(({ client, version, own, lent, over, range, target, bind, cpu, rate, ofPg }) => {
    const goal = over <= target ? `≤ ${target} reached` : `≤ ${target} **missed**`
    const rates = `${number(rate.median)} (${number(rate.min)}–${number(rate.max)})`
    return [
      `${client} ${version}`,
      own,
      lent,
      `${over}${range ? ` (${range.join(' to ')})` : ''}, ${goal}`,
      bind,
      cpu,
      rates,
      ofPg.toFixed(2),
    ]
  })
  return table(
    ['client', 'own, µs', 'lent, µs', 'over its own, µs', 'bind, µs', 'handled, µs', 'handled per second', 'of pg'],
    rows,
  )
}

/** How a run was measured that has ranges; one without is older, on the server, and moves by 30 µs from run to run. */
export function clientMethod({ clients }) {
  if (!clients[0].range) return 'What is over its own is rough in this run: it moves by 30 µs from one to the next.'
  return `Own, lent and bind are measured on answers from memory, without the server and without system calls, by turns of ten messages in
one process: over its own is the median of the differences between neighbours, with the range in which it is by 95 %.`
}

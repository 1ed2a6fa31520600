/** The figures of the peers as ratios and tables, for people. */
import { CHECKS } from './contenders.mjs'

/** The ratios of medians, with the least and the greatest of any one repeat. */
export function checksOf(rounds) {
  return CHECKS.flatMap(({ round: name, of, to, step = 'handle', target }) => {
    const contenders = rounds.find((round) => round.name === name)?.contenders ?? {}
    const rateOf = (side) => contenders[side]?.[step]?.rate
    const [best] = to.filter(rateOf).sort((a, b) => rateOf(b).median - rateOf(a).median)
    if (best === undefined || !rateOf(of)) return []
    const ratios = rateOf(of)
      .samples.map((rate, at) => rate / rateOf(best).samples[at])
      .filter(Number.isFinite)
    const [ratio, min, max] = [rateOf(of).median / rateOf(best).median, Math.min(...ratios), Math.max(...ratios)]
    const round3 = (value) => Number(value.toFixed(3))
    return { round: name, what: `${of} / ${best}`, ratio: round3(ratio), min: round3(min), max: round3(max), target }
  })
}

export function printRounds({ command, commit, machine, node, postgres, repeats, rounds, checks }) {
  console.log(
    `${machine.cpu}, ${machine.cores} cores, PostgreSQL ${postgres.server_version}, Node.js ${node}, at ${commit}`,
  )
  console.log(`${command}: medians of ${repeats}, from the lowest to the highest`)
  for (const { name, title, messages, contenders } of rounds) {
    console.log(`\n${name}: ${title}, ${messages} messages`)
    console.table(Object.fromEntries(Object.entries(contenders).map(([side, steps]) => [side, rowOf(steps)])))
  }
  console.log('\nratios of the medians, from the lowest to the highest of a repeat')
  for (const { round, what, ratio, min, max, target } of checks) {
    const goal = target === undefined ? '' : `  ≥ ${target} ${ratio >= target ? 'pass' : 'FAIL'}`
    console.log(`${`${round}: ${what}`.padEnd(75)} ${ratio.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})${goal}`)
  }
}

function rowOf({ store, handle, dead }) {
  const counted = handle ?? store
  return {
    ...(store && { 'stored/s': withSpread(store.rate) }),
    ...(handle && { 'handled/s': withSpread(handle.rate) }),
    'Node.js, µs': counted.node.median,
    'PostgreSQL, µs': counted.postgres.median,
    'WAL, bytes': (store && handle ? store.wal.median : 0) + counted.wal.median,
    ...(dead && { 'dead rows': dead.rows.median }),
  }
}

export function withSpread({ median, min, max }) {
  return `${median} (${min}–${max})`
}

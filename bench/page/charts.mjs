/** From results to charts and tables: what is shown of which round. */
import { bars } from './svg.mjs'

/** 12345 as 12 345. */
export function number(value) {
  return value >= 10_000 ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ') : String(value)
}

function spreadText({ median, min, max }) {
  return min === max ? number(median) : `${number(median)} (${number(min)}–${number(max)})`
}

function rateBar(label, rate) {
  return { label, value: rate.median, min: rate.min, max: rate.max, text: spreadText(rate) }
}

function roundOf(peers, name) {
  return peers.rounds.find((round) => round.name === name)
}

function barsOf(round, step, wanted = () => true) {
  return Object.entries(round?.contenders ?? {})
    .filter(([name, steps]) => steps[step] && wanted(name))
    .map(([name, steps]) => rateBar(name, steps[step].rate))
}

const isBatch = (name) => /batch\(\)|1 000$/.test(name)
/** Those of every round; the limit by hand and the smallest batches are in the first charts. */
const isShort = (name) => !isBatch(name) && !/by hand|single|batches of 2$/.test(name)

export function peerCharts(peers) {
  const note = `messages per second, medians of ${peers.repeats}; the line is from the least to the greatest`
  const groupsOf = (names, step, wanted) =>
    names
      .map(([name, label]) => ({ label, bars: barsOf(roundOf(peers, name), step, wanted) }))
      .filter((group) => group.bars.length > 0)
  const charts = {
    handling: {
      title: 'Handled, one INSERT per message, 200 bytes',
      groups: groupsOf(
        [
          ['warm', 'warm'],
          ['cold', 'cold: the first messages of a process'],
        ],
        'handle',
        (name) => !isBatch(name),
      ),
    },
    storing: {
      title: 'Stored, batches of 1 000, 200 bytes',
      groups: groupsOf(
        [
          ['storing, one after the other', 'one batch after the other'],
          ['storing, four in flight', 'four batches in flight'],
        ],
        'store',
      ),
    },
    single: {
      title: 'Stored, message by message, 16 in flight, 200 bytes',
      groups: groupsOf([['storing, message by message', '']], 'store'),
    },
    batches: {
      title: 'Handled, one statement per batch of 1 000, warm',
      groups: groupsOf([['warm', '']], 'handle', isBatch),
    },
    handlers: {
      title: 'Handled, by what the handler does, 200 bytes, warm',
      groups: groupsOf(
        [
          ['none, 200 B', 'no statement'],
          ['warm', 'one INSERT'],
          ['update, 200 B', 'one UPDATE of one of 100 shared rows'],
          ['three, 200 B', 'SELECT, INSERT and UPDATE of a row of its own'],
        ],
        'handle',
        isShort,
      ),
    },
    payloads: {
      title: 'Handled, by payload, one INSERT, warm',
      groups: groupsOf(
        [
          ['warm', '200 bytes'],
          ['insert, 4 kB', '4 kB'],
          ['insert, 64 kB', '64 kB'],
        ],
        'handle',
        isShort,
      ),
    },
  }
  const drawn = Object.entries(charts).filter(([, { groups }]) => groups.length > 0)
  return { ...Object.fromEntries(drawn.map(([name, chart]) => [name, bars({ note, ...chart })])), cpu: cpuChart(peers) }
}

function cpuChart(peers) {
  const warm = Object.entries(roundOf(peers, 'warm').contenders).filter(([name]) => !isBatch(name))
  const list = warm.map(([label, { handle }]) => {
    const parts = [handle.node.median, handle.postgres.median]
    const value = parts[0] + parts[1]
    return { label, value, parts, text: `${number(parts[0])} + ${number(parts[1])} µs` }
  })
  const note = 'µs of Node.js (full) + PostgreSQL (pale) for each message, without the broker; less is better'
  return bars({
    title: 'CPU time to handle a message, one INSERT, 200 bytes, warm',
    note,
    groups: [{ label: '', bars: list }],
  })
}

export function limitChart({ results, repeats }) {
  const groups = results
    .filter(({ rates }) => rates.limit?.median && rates.library?.median)
    .map(({ title, rates, checks }) => {
      const target = checks.find(({ what, target: goal }) => what === 'library / limit' && goal)?.target
      const mark = target && rates.limit.median * target
      return {
        label: title,
        bars: [rateBar('limit', rates.limit), { ...rateBar('library', rates.library), ...(mark && { mark }) }],
      }
    })
  const note = `messages per second, medians of ${repeats}; the dashed line is the target`
  return bars({ title: 'The library, and the same work in SQL by hand', note, groups })
}

export function brokerChart({ brokers, repeats }) {
  const groups = brokers.map(({ broker, version, ways }) => ({
    label: `${broker} ${version}`,
    bars: Object.entries(ways).map(([way, rate]) => rateBar(way, rate)),
  }))
  const note = `messages per second, medians of ${repeats}; the line is from the least to the greatest`
  return bars({ title: 'From a broker into a table', note, groups })
}

export function roundTable({ contenders }) {
  const rows = Object.entries(contenders).map(([name, { store, handle, dead }]) => {
    const counted = handle ?? store
    const wal = counted.wal.median + (store && handle ? store.wal.median : 0)
    const cells = [name, handle && spreadText(handle.rate), store && spreadText(store.rate)]
    return [...cells, `${counted.node.median} + ${counted.postgres.median}`, number(wal), dead?.rows.median]
  })
  const heads = ['contender', 'handled/s', 'stored/s', 'CPU, µs: Node.js + PostgreSQL', 'WAL, bytes', 'dead rows']
  return table(heads, rows)
}

export function checksTable(checks) {
  const rows = checks.map(({ round, what, ratio, min, max, target }) => [
    ...[round, what, ratio.toFixed(2), `${min.toFixed(2)}–${max.toFixed(2)}`],
    ...(target === undefined ? ['', ''] : [`≥ ${target}`, ratio >= target ? 'reached' : '**missed**']),
  ])
  return table(['round', 'ratio', 'of medians', 'of a repeat', 'target', ''], rows)
}

export function limitTable({ results }) {
  const rows = results.flatMap(({ name, checks, rates }) =>
    checks.map(({ what, ratio, target }, at) => {
      const [of = '', to = ''] = what.replace(/ \(.*/, '').split(' / ')
      const cpu = (side) => (rates[side]?.cpu ? `${rates[side].cpu.node} + ${rates[side].cpu.postgres} µs` : '')
      const verdict = target == null ? '' : ratio >= target ? 'reached' : '**missed**'
      return [at === 0 ? name : '', what, ratio.toFixed(2), target ? `≥ ${target}` : '', verdict, cpu(of), cpu(to)]
    }),
  )
  return table(['shape', 'ratio', '', 'target', '', 'CPU of the first', 'CPU of the second'], rows)
}

export function brokerTable({ brokers }) {
  const rows = brokers.flatMap(({ broker, ways, ratios }) =>
    Object.entries(ways).map(([way, rate], at) => {
      const to = (side) => ratioText(ratios.find((one) => one.of === way && one.to === side))
      const cpu = `${rate.cpu.node} + ${rate.cpu.postgres}`
      return [at === 0 ? broker : '', way, spreadText(rate), cpu, to('naive'), to('dedup')]
    }),
  )
  return table(['broker', 'way', 'per second', 'CPU, µs', 'of naive', 'of dedup'], rows)
}

function ratioText(found) {
  if (!found) return ''
  const { ratio, min, max, target } = found
  const goal = target === undefined ? '' : ratio >= target ? `, ≥ ${target} reached` : `, ≥ ${target} **missed**`
  return `${ratio.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})${goal}`
}

export function table(heads, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell ?? '').join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}

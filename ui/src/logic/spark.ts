/** The paths of a sparkline. */

interface Spark {
  readonly line: string
  readonly area: string
  readonly last?: { readonly x: number; readonly y: number }
}

/** From 0 to the largest value; one that hardly changes is a calm line in the lower half. */
export function sparkPath(values: readonly (number | null)[], width: number, height: number): Spark {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return { line: '', area: '' }
  const most = Math.max(...known)
  const top = most === 0 ? 1 : most * 1.15
  const step = values.length > 1 ? width / (values.length - 1) : 0
  const at = (value: number, n: number): [number, number] => [
    // One alone is what is now.
    round(values.length > 1 ? n * step : width),
    round(height - 1 - (value / top) * (height - 3)),
  ]
  const runs: [number, number][][] = [[]]
  values.forEach((value, n) => {
    if (value === null) runs.push([])
    else runs.at(-1)!.push(at(value, n))
  })
  const drawn = runs.filter((run) => run.length > 0)
  const line = drawn.map((run) => `M${run.map(([x, y]) => `${x} ${y}`).join('L')}`).join('')
  const area = drawn
    .filter((run) => run.length > 1)
    .map((run) => `M${run.map(([x, y]) => `${x} ${y}`).join('L')}L${run.at(-1)![0]} ${height}L${run[0]![0]} ${height}Z`)
    .join('')
  const value = values.at(-1)
  if (value == null) return { line, area }
  const [x, y] = at(value, values.length - 1)
  return { line, area, last: { x, y } }
}

const round = (n: number): number => Math.round(n * 10) / 10

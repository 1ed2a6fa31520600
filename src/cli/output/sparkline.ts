/** The last values as bars, in one line. */
const BARS = '▁▂▃▄▅▆▇█'

export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width)
  const most = Math.max(...shown, 1)
  return shown
    .map((value) => BARS[Math.min(BARS.length - 1, Math.floor((value / most) * (BARS.length - 1) + 0.5))])
    .join('')
}

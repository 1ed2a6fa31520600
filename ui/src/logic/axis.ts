/** Axes: from 0, with so few labels that they can be read at a glance. */

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Durations that people count in, in ms. */
const SPANS = [
  ...[100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 30, 90, 180, 360].map((n) => n * DAY),
]

/** The top of the axis: above the largest value, and never 0. */
export function topOf(most: number, least: number): number {
  return Math.max(most * 1.12, least)
}

/** At most `labels` of them, the first at 0, all below the top. */
export function ticks(top: number, labels: number, kind: 'span' | 'number'): number[] {
  const steps = kind === 'span' ? SPANS : niceFrom(top / labels)
  const step = steps.find((one) => Math.floor(top / one) < labels)
  return step === undefined ? [0] : Array.from({ length: 1 + Math.floor(top / step) }, (_, n) => n * step)
}

function niceFrom(least: number): number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)))
  return [1, 2, 3, 5, 10, 20, 30, 50].map((n) => n * power).map((n) => Number(n.toPrecision(6)))
}

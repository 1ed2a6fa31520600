/**
 * The counters and histograms of one box, in this process. A cell is one series: code that counts often keeps its cell, and to
 * count is then to add to a number.
 */
import {
  declarationOf,
  METRIC_NAMES,
  type CounterName,
  type Declaration,
  type HistogramName,
  type LabelsOf,
  type MetricName,
} from './declarations.js'

export interface Counter {
  readonly labels: readonly string[]
  value: number
}

export class Histogram {
  readonly labels: readonly string[]
  readonly bounds: readonly number[]
  /** One more than there are bounds: the last is what exceeds them all. Not cumulated. */
  readonly counts: number[]
  sum = 0
  /** Hears of each observation, for OpenTelemetry: it has no way to read a histogram. */
  tap: ((value: number) => void) | undefined

  constructor(labels: readonly string[], bounds: readonly number[]) {
    this.labels = labels
    this.bounds = bounds
    this.counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    const { bounds } = this
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    this.counts[at]!++
    this.sum += value
    this.tap?.(value)
  }
}

/** So many values a label may have of what comes from outside; all others are one. */
const MOST_VALUES = 100
/** As long as a name may be. */
const LONGEST = 200
export const OTHER = 'other'

/** Values of a label that anybody may send: those that are known, and the first of the others. None is long. */
export class Bounded {
  readonly #taken: Set<string>
  readonly #most: number

  constructor(known: readonly string[], most = MOST_VALUES) {
    this.#taken = new Set(known.map((value) => value.toWellFormed()).filter(isShort))
    // A box that knows its types is sent others by mistake alone.
    this.#most = known.length > 0 ? known.length : most
  }

  /** Its own, as long as there is room. */
  of(value: string): string {
    if (this.#taken.has(value)) return value
    if (!isShort(value)) return OTHER
    // What is no character is told as one: else two values would be told as the same series.
    const told = value.toWellFormed()
    if (this.#taken.has(told)) return told
    if (this.#taken.size >= this.#most) return OTHER
    this.#taken.add(told)
    return told
  }

  /** Of what was refused: its own if it has one already. It takes no room. */
  known(value: string): string {
    return this.#taken.has(value) ? value : OTHER
  }
}

function isShort(value: string): boolean {
  return value.length <= LONGEST
}

export class Registry {
  readonly #counters = new Map<MetricName, Map<string, Counter>>()
  readonly #histograms = new Map<MetricName, Map<string, Histogram>>()
  /** Told of each new histogram. */
  #added: ((name: HistogramName, histogram: Histogram) => void) | undefined

  constructor() {
    for (const name of METRIC_NAMES) {
      const { kind } = declarationOf(name)
      if (kind === 'counter') this.#counters.set(name, new Map())
      else if (kind === 'histogram') this.#histograms.set(name, new Map())
    }
  }

  counter<N extends CounterName>(name: N, ...labels: LabelsOf<N>): Counter {
    const values = labels as unknown as readonly string[]
    return cellOf(this.#counters.get(name)!, values, () => ({ labels: values, value: 0 }))
  }

  histogram<N extends HistogramName>(name: N, ...labels: LabelsOf<N>): Histogram {
    const values = labels as unknown as readonly string[]
    return cellOf(this.#histograms.get(name)!, values, () => {
      const { buckets = [] }: Declaration = declarationOf(name)
      const made = new Histogram(values, buckets)
      this.#added?.(name, made)
      return made
    })
  }

  counters(name: MetricName): Iterable<Counter> {
    return this.#counters.get(name)?.values() ?? []
  }

  histograms(name: MetricName): Iterable<Histogram> {
    return this.#histograms.get(name)?.values() ?? []
  }

  /** Calls back for every histogram that there is, and for each that is added. */
  eachHistogram(see: (name: HistogramName, histogram: Histogram) => void): void {
    this.#added = see
    for (const [name, cells] of this.#histograms) for (const cell of cells.values()) see(name as HistogramName, cell)
  }
}

function cellOf<C>(cells: Map<string, C>, labels: readonly string[], make: () => C): C {
  // No name may contain NUL.
  const key = labels.join('\0')
  let cell = cells.get(key)
  if (cell === undefined) {
    cell = make()
    cells.set(key, cell)
  }
  return cell
}

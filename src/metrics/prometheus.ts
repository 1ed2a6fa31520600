/** The text format of Prometheus, version 0.0.4, written by hand. */
import { declarationOf, METRIC_NAMES, type Declaration, type Label, type MetricName } from './declarations.js'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** What a box says of one metric: values, or histograms. */
export interface Family {
  readonly name: MetricName
  readonly values: readonly { readonly labels: readonly string[]; readonly value: number }[]
  readonly histograms: readonly HistogramValue[]
}

export interface HistogramValue {
  readonly labels: readonly string[]
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

/** A box, under the name that tells its series from those of others. */
export interface Told {
  readonly box: string
  readonly families: readonly Family[]
}

/** All boxes in one text: the series of a metric have to stand together. */
export function toPrometheus(boxes: readonly Told[]): string {
  const lines: string[] = []
  for (const name of METRIC_NAMES) {
    const own = boxes.flatMap(({ box, families }) =>
      families.filter((family) => family.name === name).map((family) => ({ box, family })),
    )
    if (own.every(({ family }) => family.values.length + family.histograms.length === 0)) continue
    const declared = declarationOf(name)
    const metric = prometheusName(name)
    lines.push(`# HELP ${metric} ${escapeHelp(declared.help)}`, `# TYPE ${metric} ${declared.kind}`)
    for (const { box, family } of own) writeFamily(lines, metric, box, family)
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

export function prometheusName(name: MetricName): string {
  const { kind, unit }: Declaration = declarationOf(name)
  const base = name.replaceAll('.', '_')
  return `${base}${unit === 's' ? '_seconds' : unit === 'By' ? '_bytes' : ''}${kind === 'counter' ? '_total' : ''}`
}

function writeFamily(lines: string[], metric: string, box: string, { name, values, histograms }: Family): void {
  const { labels: names } = declarationOf(name)
  for (const { labels, value } of values) lines.push(`${metric}{${pairs(box, names, labels)}} ${printed(value)}`)
  for (const { labels, bounds, counts, sum } of histograms) {
    const own = pairs(box, names, labels)
    let count = 0
    bounds.forEach((bound, at) => {
      count += counts[at]!
      lines.push(`${metric}_bucket{${own},le="${printed(bound)}"} ${count}`)
    })
    count += counts[bounds.length]!
    lines.push(`${metric}_bucket{${own},le="+Inf"} ${count}`)
    lines.push(`${metric}_sum{${own}} ${printed(sum)}`, `${metric}_count{${own}} ${count}`)
  }
}

function pairs(box: string, names: readonly Label[], labels: readonly string[]): string {
  const own = names.map((name, at) => `,${name}="${escapeLabel(labels[at]!)}"`)
  return `box="${escapeLabel(box)}"${own.join('')}`
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function printed(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

/** Reads what Prometheus would read. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Scrape {
  readonly text: string
  readonly samples: readonly Sample[]
  /** Metrics by name, as `# TYPE` says. */
  readonly types: ReadonlyMap<string, string>
  /** The one sample that has these labels among its own; undefined if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
  /** The sum of those that have these labels among their own. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

export async function scrape(box: { metrics(): Promise<string> }): Promise<Scrape> {
  return parse(await box.metrics())
}

export function parse(text: string): Scrape {
  const types = new Map<string, string>()
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (name !== undefined) types.set(name, type!)
    if (line === '' || line.startsWith('#')) continue
    samples.push(parseSample(line))
  }
  const matching = (name: string, labels: Readonly<Record<string, string>> = {}): Sample[] =>
    samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    )
  return {
    text,
    samples,
    types,
    value(name, labels) {
      const found = matching(name, labels)
      if (found.length > 1) throw new Error(`${found.length} samples of ${name} have ${JSON.stringify(labels)}`)
      return found[0]?.value
    },
    sum: (name, labels) => matching(name, labels).reduce((sum, { value }) => sum + value, 0),
  }
}

function parseSample(line: string): Sample {
  const [, name, inside, value] = /^([a-z_]+)\{(.*)\} (\S+)$/.exec(line) ?? []
  if (name === undefined) throw new Error(`not a sample: ${line}`)
  const labels: Record<string, string> = {}
  for (const [, label, escaped] of inside!.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[label!] = escaped!.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))
  }
  return { name, labels, value: value === '+Inf' ? Infinity : Number(value) }
}

/** The four charts: lag, rate, depth and duplicates. They share the time, and one crosshair. */
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { Chart } from '../charts/chart.js'
import type { Drawing } from '../charts/drawing.js'
import { writeTime } from '../charts/write-time.js'
import { pointedAt, range, shown } from '../charts/zoom.js'
import { count, duration, percent, rate, short, span } from '../logic/format.js'
import type { Values } from '../logic/lines.js'
import { sentenceOf } from '../logic/sentence.js'
import { BEHIND_MS, consumersOf } from '../logic/verdict.js'
import type { Figures } from './figures.js'

const MINUTE_MS = 60_000

/** On the axis there is no room for "12 min 31 s". */
const axisSpan = (ms: number): string => (ms < MINUTE_MS ? `${ms / 1000} s` : span(ms))

export function Charts({ figures }: { figures: Figures }) {
  return (
    <section aria-label={`Charts, ${range.value.words}`} class="charts">
      <Lag {...figures} />
      <Rate {...figures} />
      <div class="charts-stack">
        <Depth {...figures} />
        <Duplicates {...figures} />
      </div>
    </section>
  )
}

/** Where the pointer is, or at the end. */
function useIndex(times: readonly number[]): number {
  const at = pointedAt.value
  const found = at === undefined ? -1 : times.indexOf(at)
  return found === -1 ? times.length - 1 : found
}

/** Where the pointer is; without one, what holds now, or else the last that is known. */
function useValue({ times }: Figures['lines'], values: Values, now: number | null | undefined): number | null {
  const index = useIndex(times)
  if (pointedAt.value !== undefined) return values[index] ?? null
  return now ?? values.findLast((value) => value !== null) ?? null
}

function useSentence(title: string, drawing: Drawing, write: (value: number) => string): string {
  const { min, max } = shown.value
  return useMemo(
    () =>
      sentenceOf({
        title: `${title}, ${range.value.words}`,
        times: drawing.times,
        values: drawing.lines[0]!.values,
        limit: drawing.limit,
        write,
        when: (time) => writeTime(time, Math.min(86_400, max - min)),
      }),
    [drawing],
  )
}

function Lag({ overview, lines }: Figures) {
  const worst = consumersOf(overview)
    .filter(({ paused }) => !paused)
    .reduce<{ name: string; lagMs: number; limitMs?: number } | undefined>(
      (most, one) => (most && most.lagMs >= one.lagMs ? most : one),
      undefined,
    )
  const limit = worst?.limitMs ?? BEHIND_MS
  const drawing = useMemo(
    (): Drawing => ({
      times: lines.times,
      lines: [{ values: lines.lagMs, colour: 'lag', area: 0.14 }],
      limit,
      unit: 'span',
      write: axisSpan,
      labels: 3,
      least: 10_000,
    }),
    [lines, limit],
  )
  const pointed = pointedAt.value !== undefined
  const value = useValue(lines, lines.lagMs, worst?.lagMs)
  return (
    <Chart
      title="Lag"
      sub="age of the oldest message that is due"
      sentence={useSentence('Lag', drawing, duration)}
      drawing={drawing}
      columns={[{ title: 'Lag', values: lines.lagMs, write: duration }]}
      flag
      head={
        <>
          <span class={`chart-val ${value !== null && value > limit ? 'f-dead' : ''}`}>
            {value === null ? '–' : duration(value)}
          </span>
          {!pointed && value !== null && value > 0 && <span class="chart-sub">{worst?.name}</span>}
        </>
      }
    />
  )
}

function Rate({ overview, lines }: Figures) {
  const drawing = useMemo(
    (): Drawing => ({
      times: lines.times,
      lines: [
        { values: lines.in, colour: 'in' },
        { values: lines.out, colour: 'out', dashed: true },
      ],
      unit: 'number',
      write: short,
      labels: 3,
      least: 1,
    }),
    [lines],
  )
  const inNow = useValue(lines, lines.in, overview.rates?.inPerSecond)
  const outNow = useValue(lines, lines.out, overview.rates?.outPerSecond)
  const apart = (inNow ?? 0) - (outNow ?? 0)
  // Rates are of whole minutes: where nothing waits, all that came was handled since.
  const late = consumersOf(overview).filter(({ pending, lagMs }) => pending > 0 && lagMs > 0)
  const waits = useValue(lines, lines.depth, late.length) ?? 0
  return (
    <Chart
      title="Rate"
      sub="messages per second, all consumers"
      sentence={useSentence('Rate of what comes in, per second', drawing, rate)}
      drawing={drawing}
      columns={[
        { title: 'In /s', values: lines.in, write: rate },
        { title: 'Out /s', values: lines.out, write: rate },
      ]}
      head={
        <>
          <Key line="in">
            In <b>{inNow === null ? '–' : rate(inNow)}</b>
          </Key>
          <Key line="out">
            Out <b>{outNow === null ? '–' : rate(outNow)}</b>
          </Key>
          {apart >= 0.1 && waits > 0 && <span class="chart-sub">falling behind by {rate(apart)}/s</span>}
        </>
      }
    />
  )
}

function Key({ line, children }: { line: 'in' | 'out'; children: ComponentChildren }) {
  return (
    <span class="key">
      <svg viewBox="0 0 14 8" aria-hidden="true">
        <path class={`ln ln-${line}`} d="M0 4h14" />
      </svg>
      <span>{children}</span>
    </span>
  )
}

function Depth({ overview, lines }: Figures) {
  const drawing = useMemo(
    (): Drawing => ({
      times: lines.times,
      lines: [{ values: lines.depth, colour: 'depth', area: 0.12 }],
      unit: 'number',
      write: short,
      labels: 2,
      least: 1,
    }),
    [lines],
  )
  const pending = overview.consumers.reduce((all, one) => all + one.pending, 0)
  const value = useValue(lines, lines.depth, pending)
  const estimated = overview.consumers.some((one) => one.estimated)
  return (
    <Chart
      mini
      title="Depth"
      sentence={useSentence('Messages that wait', drawing, count)}
      drawing={drawing}
      columns={[{ title: 'Pending', values: lines.depth, write: count }]}
      aside={
        <span class="chart-val">
          {value === null ? '–' : `${estimated && value > 0 ? '≈ ' : ''}${count(value)}`} <small>pending</small>
        </span>
      }
    />
  )
}

function Duplicates({ overview, lines }: Figures) {
  const drawing = useMemo(
    (): Drawing => ({
      times: lines.times,
      lines: [{ values: lines.duplicates, colour: 'dup', area: 0.14 }],
      unit: 'number',
      write: short,
      labels: 2,
      least: 1,
    }),
    [lines],
  )
  const value = useValue(lines, lines.duplicates, overview.rates?.duplicatesPerSecond)
  const came = useValue(lines, lines.in, overview.rates?.inPerSecond)
  return (
    <Chart
      mini
      title="Duplicates"
      sentence={useSentence('Duplicates per second', drawing, rate)}
      drawing={drawing}
      columns={[{ title: 'Duplicates /s', values: lines.duplicates, write: rate }]}
      aside={
        <span class="chart-val">
          {value === null ? '–' : rate(value)}{' '}
          <small>/s{value !== null && came !== null && ` · ${percent(value, value + came)}`}</small>
        </span>
      }
    />
  )
}

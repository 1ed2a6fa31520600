/** The tables of `oncebox status`, and what was seen before, for the course of things. */
import type { Counts, Status } from '../../admin/index.js'
import { showCount, showDuration } from '../output/duration.js'
import { sparkline } from '../output/sparkline.js'
import type { Column } from '../output/table.js'
import { paint, type Style, type Text } from '../output/text.js'

/** What a line of bars shows at most. */
const KEPT = 20

export interface History {
  add(now: Status): void
  /** Of a consumer, or a type of the outbox: the latest last. */
  of(place: keyof Status, name: string): readonly Counts[]
}

export function createHistory(): History {
  const seen = new Map<string, Counts[]>()
  const keyOf = (place: keyof Status, name: string): string => JSON.stringify([place, name])
  return {
    add(now) {
      for (const place of ['consumers', 'outbox'] as const) {
        for (const [name, counts] of Object.entries(now[place])) {
          const key = keyOf(place, name)
          seen.set(key, [...(seen.get(key) ?? []), counts].slice(-KEPT))
        }
      }
    },
    of: (place, name) => seen.get(keyOf(place, name)) ?? [],
  }
}

export interface StatusTable {
  readonly columns: Column[]
  readonly rows: Text[][]
}

interface Shown {
  readonly maxLagMs: number | undefined
  readonly history: History | undefined
}

export function statusLines({ consumers, outbox }: Status, shown: Shown): StatusTable[] {
  const own = Object.entries(consumers).map(([name, counts]) => {
    const state: Text = counts.paused ? paint('yellow', 'paused') : ''
    return [
      name === '' ? paint('dim', '(no consumer)') : name,
      ...cells(counts),
      ...course('consumers', name, shown),
      state,
    ]
  })
  const events = Object.entries(outbox).map(([name, counts]) => {
    const [pending, , handled, dead, , discarded, lag] = cells(counts, shown.maxLagMs)
    return [name, pending!, handled!, dead!, discarded!, lag!, ...course('outbox', name, shown)]
  })
  const inbox = { columns: columnsOf('CONSUMER', STATES, shown, [{ title: '' }]), rows: own }
  const out = { columns: columnsOf('OUTBOX TYPE', EVENT_STATES, shown), rows: events }
  return [...(own.length > 0 ? [inbox] : []), ...(events.length > 0 ? [out] : [])]

  function cells(counts: Counts, maxLagMs = shown.maxLagMs): Text[] {
    const { pending, processing, handled, dead, quarantined, discarded, lagMs, estimated } = counts
    const count = (value: number, style?: Style): Text => {
      const text = `${estimated ? '~' : ''}${showCount(value)}`
      return style !== undefined && value > 0 ? paint(style, text) : text
    }
    const late = maxLagMs !== undefined && lagMs > maxLagMs
    return [
      ...[count(pending), count(processing), count(handled)],
      ...[count(dead, 'red'), count(quarantined, 'yellow'), count(discarded)],
      late ? paint('red', showDuration(lagMs)) : showDuration(lagMs),
    ]
  }
}

const STATES = ['PENDING', 'PROCESSING', 'HANDLED', 'DEAD', 'QUARANTINED', 'DISCARDED', 'LAG']
const EVENT_STATES = ['PENDING', 'PUBLISHED', 'DEAD', 'DISCARDED', 'LAG']

function columnsOf(first: string, titles: readonly string[], { history }: Shown, rest: Column[] = []): Column[] {
  const bars =
    history === undefined
      ? []
      : [
          { title: 'BACKLOG', least: 4 },
          { title: 'LAG', least: 4 },
        ]
  const numbers = titles.map((title) => ({ title, right: true as const }))
  return [{ title: first, least: 10 }, ...numbers, ...bars, ...rest]
}

function course(place: keyof Status, name: string, { history }: Shown): Text[] {
  if (history === undefined) return []
  const seen = history.of(place, name)
  const bars = (values: number[]): Text => paint('cyan', sparkline(values, KEPT))
  return [bars(seen.map(({ pending, processing }) => pending + processing)), bars(seen.map(({ lagMs }) => lagMs))]
}

/** Times of a query: 14:00, 2026-11-15, 2026-11-15T13:52:00Z, or 90m for so long ago. */
import { Problem } from './problem.js'

export interface Clock {
  readonly nowMs: number
  /** Minutes that the reader's clock is ahead of UTC. */
  readonly zone: number
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const DAY_MS = 86_400_000

export function readTime(text: string, { nowMs, zone }: Clock): Date {
  const ago = /^(\d{1,6})([smhdw])$/.exec(text)
  if (ago) return checked(nowMs - Number(ago[1]) * UNITS[ago[2]!]!, text)
  const zoneMs = zone * 60_000
  if (/^\d{1,2}:\d\d(:\d\d)?$/.test(text)) {
    const today = new Date(nowMs + zoneMs).toISOString().slice(0, 10)
    const ms = Date.parse(`${today}T${text.padStart(text.length + (text.indexOf(':') === 1 ? 1 : 0), '0')}Z`) - zoneMs
    // The last time it was that late.
    return checked(ms > nowMs ? ms - DAY_MS : ms, text)
  }
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return checked(Date.parse(`${text}T00:00:00Z`) - zoneMs, text)
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?$/.test(text))
    return checked(Date.parse(`${text}Z`) - zoneMs, text)
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$/.test(text))
    return checked(Date.parse(text), text)
  throw notATime(text)
}

function checked(ms: number, text: string): Date {
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) throw notATime(text)
  return date
}

function notATime(text: string): Problem {
  return new Problem(
    'QUERY_INVALID',
    `‘${text}’ is no time: 14:00, 2026-11-15, 2026-11-15T13:52:00Z, or 90m for that long ago`,
  )
}

/** Times: the reader's own, with UTC on hover. */

export interface Clock {
  readonly utc: boolean
}

type Parts = Intl.DateTimeFormatOptions

export const TIME: Parts = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }
export const MINUTE: Parts = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
export const DAY: Parts = { day: 'numeric', month: 'short' }
const YEAR: Parts = { ...DAY, year: 'numeric' }

const DAY_MS = 86_400_000

/** 14:32:08 today; 15 Nov, 14:32 before; 15 Nov 2025 in another year. */
export function moment(at: string | number, now: number, clock: Clock): string {
  const date = new Date(at)
  if (sameDay(date.getTime(), now, clock)) return write(date, TIME, clock)
  return sameYear(date, now, clock)
    ? `${write(date, DAY, clock)}, ${write(date, MINUTE, clock)}`
    : write(date, YEAR, clock)
}

/** 14:32 today, and with its day before. */
export function minute(at: string | number, now: number, clock: Clock): string {
  const date = new Date(at)
  const time = write(date, MINUTE, clock)
  return sameDay(date.getTime(), now, clock) ? time : `${write(date, DAY, clock)}, ${time}`
}

/** Before the time of another day: "15 Nov, ", or with its year. */
export function dayUnlessToday(at: string | number, now: number, clock: Clock): string {
  const date = new Date(at)
  if (sameDay(date.getTime(), now, clock)) return ''
  return `${write(date, sameYear(date, now, clock) ? DAY : YEAR, clock)}, `
}

export function clockTime(at: string | number, clock: Clock): string {
  return write(new Date(at), TIME, clock)
}

/** 15 Nov 2026, 14:32:08.123 UTC */
export function inUtc(at: string | number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return ''
  const utc = { utc: true }
  return `${write(date, YEAR, utc)}, ${write(date, TIME, utc)}.${date.toISOString().slice(20, 23)} UTC`
}

function sameYear(date: Date, now: number, clock: Clock): boolean {
  return write(date, { year: 'numeric' }, clock) === write(new Date(now), { year: 'numeric' }, clock)
}

function sameDay(a: number, b: number, clock: Clock): boolean {
  if (Math.abs(a - b) > DAY_MS) return false
  return write(new Date(a), YEAR, clock) === write(new Date(b), YEAR, clock)
}

/** To make one takes longer than to write a hundred times with it. */
const formats = new Map<string, Intl.DateTimeFormat>()

export function write(date: Date, parts: Parts, { utc }: Clock): string {
  if (Number.isNaN(date.getTime())) return '–'
  // Whoever travels with an open page gets another zone.
  const zone = utc ? 'UTC' : new Date().getTimezoneOffset()
  const key = `${zone} ${Object.keys(parts).join(' ')}`
  let format = formats.get(key)
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', { ...parts, ...(utc && { timeZone: 'UTC' }) })
    formats.set(key, format)
  }
  return format.format(date)
}

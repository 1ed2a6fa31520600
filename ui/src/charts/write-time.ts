/** Times on an axis. */
import { clock } from '../now.js'

const MINUTES: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
const SECONDS: Intl.DateTimeFormatOptions = { ...MINUTES, second: '2-digit' }
const DAYS: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short' }

/** 14:05, and its day when days are what one looks at. */
export function writeTime(seconds: number, spanS: number): string {
  const parts = spanS > 2 * 86_400 ? DAYS : spanS < 180 ? SECONDS : MINUTES
  const zone = clock.peek().utc ? { timeZone: 'UTC' } : {}
  return new Date(seconds * 1000).toLocaleString('en-GB', { ...parts, ...zone })
}

/** Figures that several parts go by. */
export const DAY_MS = 86_400_000
export const MIB = 1024 * 1024

/** A hundred years, the longest time that anything can be told to wait or to keep: PostgreSQL cannot add for ever. */
export const LONGEST_MS = 36_500 * DAY_MS

/** The dedup horizon of a consumer that says nothing, also where nobody has declared it. */
export const DEFAULT_RETAIN_MS = 30 * DAY_MS

/** Statements with more than that are split: jsonb takes 256 MiB, and far below it a statement stays cheap. */
export const MAX_BATCH_BYTES = 8 * MIB

/** A process says so often which consumers and sinks it has; one that was not seen for so long is gone. */
export const SEEN_EVERY_MS = 20_000
export const GONE_MS = 90_000

/** Of several at work one may succeed while the next one fails: for so long nothing must fail before all is well again. */
export const CALM_MS = 1_000

/** The times that PostgreSQL and JavaScript write alike: from the year 1 to the end of the year 9999. */
export const CALENDAR = {
  first: Date.parse('0001-01-01T00:00:00.000Z'),
  last: Date.parse('9999-12-31T23:59:59.999Z'),
} as const

export function isOnCalendar(at: unknown): at is Date {
  return at instanceof Date && at.getTime() >= CALENDAR.first && at.getTime() <= CALENDAR.last
}

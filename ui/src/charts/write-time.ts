/** Times on an axis. */
import { DAY, MINUTE, TIME, write } from '../logic/when.js'
import { clock } from '../now.js'

/** 14:05, and its day when days are what one looks at. */
export function writeTime(seconds: number, spanS: number): string {
  const parts = spanS > 2 * 86_400 ? DAY : spanS < 180 ? TIME : MINUTE
  return write(new Date(seconds * 1000), parts, clock.peek())
}

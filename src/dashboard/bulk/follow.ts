/**
 * Follow: what becomes of messages that were made pending again. It looks at a few hundred of them at a time, oldest first, and
 * forgets each as soon as it has run once.
 */
import { FATES } from '../../postgres/sql/dashboard.js'
import type { MessageKey } from '../../postgres/sql/rules.js'
import type { Runtime } from '../../runtime.js'

const AT_ONCE = 500
const MOST_KEYS = 20_000
/** Of the last so many that have run, more than half failed: the cause is still there. */
const WINDOW = 50

export interface Follower {
  add(keys: readonly MessageKey[]): void
  look(): Promise<void>
  readonly handled: number
  readonly failedAgain: number
  readonly open: number
  /** More than half of the last fifty failed again. */
  readonly isHopeless: boolean
}

export function createFollower({ db }: Runtime): Follower {
  let open: MessageKey[] = []
  const last: boolean[] = []
  const seen = { handled: 0, failedAgain: 0 }
  const note = (failed: boolean): void => {
    seen[failed ? 'failedAgain' : 'handled'] += 1
    last.push(failed)
    if (last.length > WINDOW) last.shift()
  }
  return {
    add(keys) {
      open.push(...keys.slice(0, MOST_KEYS - open.length))
    },
    async look() {
      const asked = open.slice(0, AT_ONCE)
      if (asked.length === 0) return
      const rows = new Map((await db.run(FATES, asked)).map((row) => [Number(row.of), row]))
      const waiting = asked.filter((_, at) => {
        const row = rows.get(at)
        // Retention takes what was handled.
        if (row === undefined || row.state === 'handled') note(false)
        else if (Number(row.attempts) > 0 || (row.state !== 'pending' && row.state !== 'processing')) note(true)
        else return true
        return false
      })
      open = [...open.slice(asked.length), ...waiting]
    },
    get handled() {
      return seen.handled
    },
    get failedAgain() {
      return seen.failedAgain
    },
    get open() {
      return open.length
    },
    get isHopeless() {
      return last.length === WINDOW && last.filter(Boolean).length > WINDOW / 2
    },
  }
}

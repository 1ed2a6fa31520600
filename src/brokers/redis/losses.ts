/** Tells of entries that were trimmed before they were handled: together, and a few times an hour at most. */
import { OnceboxError } from '../../errors.js'
import type { Reports } from '../run.js'
import type { Skipped } from './group.js'

export interface Losses {
  /** These were given to this group, and are gone. */
  gone(ids: readonly string[]): void
  /** These were never given to it. Told once, however often they are found. */
  skipped(entries: Skipped): void
  /** Tells what was not told yet, if it is time. */
  tell(): void
  /** Tells it now. */
  flush(): void
}

/** A stream that is trimmed too soon loses entries all the time. */
const TELL_EVERY_MS = 60_000
const MOST_IDS = 10
const ADVICE = 'trim less, or consume faster'

export function createLosses({ tellPassing }: Reports): Losses {
  const ids = new Set<string>()
  let passed: Skipped | undefined
  /** So many of those that the server counts are told, or about to be. */
  let known = 0
  let toldAt = -Infinity

  const flush = (): void => {
    const what: string[] = []
    if (ids.size > 0) {
      const named = [...ids].slice(0, MOST_IDS).join(', ')
      what.push(`${ids.size} that waited here (${named}${ids.size > MOST_IDS ? ', …' : ''})`)
    }
    if (passed) what.push(`${passed.count} before ${passed.before} that nobody was given`)
    ids.clear()
    passed = undefined
    if (what.length === 0) return
    toldAt = performance.now()
    const words = `entries were trimmed before they were handled: ${what.join('; ')}; ${ADVICE}`
    tellPassing(new OnceboxError('NOT_FOUND', words))
  }
  const tell = (): void => {
    if (performance.now() - toldAt >= TELL_EVERY_MS) flush()
  }
  return {
    gone(some) {
      for (const id of some) ids.add(id)
      if (some.length > 0) tell()
    },
    skipped({ count, before }) {
      if (count > known) passed = { count: (passed?.count ?? 0) + count - known, before }
      if (count > known || count === 0) known = count
      if (passed) tell()
    },
    tell,
    flush,
  }
}

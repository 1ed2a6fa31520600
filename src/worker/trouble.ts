/**
 * Trouble: tells of what fails once, and once more when it works again.
 *
 *     works ── a failure: told ──> in trouble ── works, with no failure for a while: told ──> works
 *
 * Whatever is tried again many times a second would otherwise be told many times a second. In trouble, every further
 * cause is told once; that the database is away is one cause, in however many words.
 */
import { causes, plainWords } from '../failure.js'
import { isConnectionLoss, sqlState } from '../postgres/errors.js'
import { readableError } from '../readable.js'

export interface Trouble {
  /** It failed. Told if the cause is new. */
  failed(error: unknown): void
  /** It works. Told if it was in trouble. */
  worked(): void
  /** It answers, and has not worked yet: nothing is told. */
  answered(): void
  /** It is not tried any more, so nothing is to be told of it. */
  forget(): void
  /** How often it failed since it last worked, or answered. */
  readonly failures: number
  /** What its latest failure said. */
  readonly latest: string | undefined
  /** When it failed for the first time since it last worked, in ms since 1970. */
  readonly since: number | undefined
}

export interface Listener {
  failed(error: Error): void
  /** `away`: the database was, or whatever else it is connected to. */
  recovered(away: boolean): void
}

/** An error may name something new every time: so many different ones are told. */
const MOST_TOLD = 10
const AWAY = 'away'

/** `calmMs`: for so long nothing must fail before it counts as working. Several at work would change their minds. */
export function createTrouble(listener: Listener, calmMs = 0): Trouble {
  const told = new Set<string>()
  let failures = 0
  let latest: string | undefined
  let lastFailed = -Infinity
  let since: number | undefined
  return {
    failed(error) {
      failures++
      since ??= Date.now()
      lastFailed = performance.now()
      const cause = readableError(error)
      latest = plainWords(cause)
      const name = nameOf(cause)
      if (told.has(name) || told.size >= MOST_TOLD) return
      told.add(name)
      listener.failed(cause)
    },
    worked() {
      failures = 0
      since = undefined
      if (told.size === 0 || performance.now() - lastFailed < calmMs) return
      const away = told.has(AWAY)
      told.clear()
      listener.recovered(away)
    },
    answered() {
      failures = 0
    },
    forget() {
      failures = 0
      since = undefined
      told.clear()
    },
    get failures() {
      return failures
    },
    get latest() {
      return latest
    },
    get since() {
      return since
    },
  }
}

function nameOf(error: Error): string {
  for (const cause of causes(error)) if (isConnectionLoss(cause)) return AWAY
  // What is counted in the message makes no new cause.
  return sqlState(error) ?? (error.message || plainWords(error)).replaceAll(/\d+/g, '0')
}

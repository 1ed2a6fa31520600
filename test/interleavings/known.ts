/**
 * Meetings that are known to go wrong, with the reason. When they turn right the suite fails until their mark is taken
 * away. It is not said how many they are: whether a statement locks a row that it does not need depends on its plan.
 */
import type { Finding } from './meet.js'

export interface Mark {
  readonly meetings: RegExp
  readonly wrong: string
  readonly reason: string
}

export const KNOWN_OF_MESSAGES: Mark[] = []

export const KNOWN_OF_EVENTS: Mark[] = []

/** Keeps book of what was found against what is known. */
export class Marks {
  readonly #marks: readonly Mark[]
  readonly #seen = new Set<Mark>()

  constructor(marks: readonly Mark[]) {
    this.#marks = marks
  }

  /** What no mark speaks of. */
  unknown(findings: readonly Finding[]): Finding[] {
    return findings.flatMap(({ meeting, wrong }) => {
      const left = wrong.filter((what) => {
        const mark = this.#marks.find((one) => one.wrong === what && one.meetings.test(meeting))
        if (mark) this.#seen.add(mark)
        return mark === undefined
      })
      return left.length > 0 ? [{ meeting, wrong: left }] : []
    })
  }

  /** Marks of what does not go wrong any more. */
  stale(): string[] {
    return this.#marks.filter((mark) => !this.#seen.has(mark)).map(({ meetings }) => String(meetings))
  }
}

/**
 * Meetings that are known to go wrong, with the reason. A mark names how many: when one of them turns right, the suite
 * fails until its mark is taken away, and when another turns wrong it fails too.
 */
import type { Finding } from './meet.js'

export interface Mark {
  readonly meetings: RegExp
  readonly wrong: string
  readonly count: number
  readonly reason: string
}

const HEARTBEAT = 'a heartbeat was told that it holds, and extended nothing'
const FIRST_CALLS = 'two parties were told that nobody called before'
const TAKEN_BACK = 'an intent was taken back by a party without the right'
const NO_ANSWER = 'it waits for an answer that nobody can give any more'
const NO_OUTCOME = 'an outcome was recorded and is not on record'

export const KNOWN_OF_MESSAGES: Mark[] = [
  {
    meetings: /\| EXTEND_LANES \| commit$/,
    wrong: HEARTBEAT,
    count: 16,
    reason: 'the heartbeat skips a lane that is locked, and `held` counts it all the same',
  },
  {
    meetings: /\| COUNT_ATTEMPT \| EXTEND \| commit$/,
    wrong: HEARTBEAT,
    count: 5,
    reason: 'the same for messages; their own worker holds the lock, for a moment',
  },
  {
    meetings: /\| INTEND by (.) \| INTEND by \1 \| commit$/,
    wrong: FIRST_CALLS,
    count: 8,
    reason: 'what was on record is read in the snapshot from before the wait for the other intent',
  },
  {
    meetings: /\| FORGET_EFFECT by . \| alone$/,
    wrong: TAKEN_BACK,
    count: 9,
    reason: 'an intent does not say whose it is, so anybody can take it back',
  },
  {
    meetings: /unknown, intent \| FORGET_EFFECT by . \| alone$/,
    wrong: NO_ANSWER,
    count: 4,
    reason: 'the same, of a message that is parked',
  },
  {
    meetings:
      /(FAIL|FAIL_LANE) unknown \| RECORD_EFFECT by B \| commit$|RECORD_EFFECT by B \| (FAIL|FAIL_LANE) unknown \| commit$/,
    wrong: NO_ANSWER,
    count: 6,
    reason: 'a message is parked for an outcome that is being recorded; neither statement waits for the other',
  },
  {
    meetings: /\| (FORGET_EFFECT by .|ANSWER_EFFECT did not) \| RECORD_EFFECT by . \| commit$/,
    wrong: NO_OUTCOME,
    count: 9,
    reason: 'an outcome is recorded only over an intent, and nobody looks whether it was',
  },
]

export const KNOWN_OF_EVENTS: Mark[] = [
  {
    meetings: /\| DISCARD_DELIVERIES \| EXTEND_SHARDS \| commit$/,
    wrong: HEARTBEAT,
    count: 4,
    reason: 'the heartbeat skips a shard that is locked, and `held` counts it all the same',
  },
  {
    meetings: /\| ASSIGN \| REGISTER_SINKS, then RECONSIDER \| commit$/,
    wrong: 'it was put aside, though a sink that wants it was told that all is reconsidered',
    count: 1,
    reason: 'an update does not wait for a row that is just being put aside',
  },
]

/** Keeps book of what was found against what is known. */
export class Marks {
  readonly #marks: readonly Mark[]
  readonly #seen = new Map<Mark, number>()

  constructor(marks: readonly Mark[]) {
    this.#marks = marks
  }

  /** What no mark speaks of. */
  unknown(findings: readonly Finding[]): Finding[] {
    return findings.flatMap(({ meeting, wrong }) => {
      const left = wrong.filter((what) => {
        const mark = this.#marks.find((one) => one.wrong === what && one.meetings.test(meeting))
        if (mark) this.#seen.set(mark, (this.#seen.get(mark) ?? 0) + 1)
        return mark === undefined
      })
      return left.length > 0 ? [{ meeting, wrong: left }] : []
    })
  }

  /** Marks that promise another number than was found. */
  stale(): { meetings: string; marked: number; found: number }[] {
    return this.#marks
      .map((mark) => ({ meetings: String(mark.meetings), marked: mark.count, found: this.#seen.get(mark) ?? 0 }))
      .filter(({ marked, found }) => marked !== found)
  }
}

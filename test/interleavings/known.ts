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

const HEARTBEAT = 'a heartbeat was told that it holds, and extended nothing'
const FIRST_CALLS = 'two parties were told that nobody called before'
const TAKEN_BACK = 'an intent was taken back by a party without the right'
const NO_ANSWER = 'it waits for an answer that nobody can give any more'
const NO_OUTCOME = 'an outcome was recorded and is not on record'

export const KNOWN_OF_MESSAGES: Mark[] = [
  {
    meetings: /\| EXTEND_LANES \| commit$/,
    wrong: HEARTBEAT,
    reason: 'the heartbeat skips a lane that is locked, and `held` counts it all the same',
  },
  {
    meetings: /\| COUNT_ATTEMPT \| EXTEND \| commit$/,
    wrong: HEARTBEAT,
    reason: 'the same for messages; their own worker holds the lock, for a moment',
  },
  {
    meetings: /\| INTEND by (.) \| INTEND by \1 \| commit$/,
    wrong: FIRST_CALLS,
    reason: 'what was on record is read in the snapshot from before the wait for the other intent',
  },
  {
    meetings: /\| FORGET_EFFECT by . \| alone$/,
    wrong: TAKEN_BACK,
    reason: 'an intent does not say whose it is, so anybody can take it back',
  },
  {
    meetings: /unknown, intent \| FORGET_EFFECT by . \| alone$/,
    wrong: NO_ANSWER,
    reason: 'the same, of a message that is parked',
  },
  {
    meetings:
      /(FAIL|FAIL_LANE) unknown \| RECORD_EFFECT by B \| commit$|RECORD_EFFECT by B \| (FAIL|FAIL_LANE) unknown \| commit$/,
    wrong: NO_ANSWER,
    reason: 'a message is parked for an outcome that is being recorded; neither statement waits for the other',
  },
  {
    meetings: /\| (FORGET_EFFECT by .|ANSWER_EFFECT did not) \| RECORD_EFFECT by . \| commit$/,
    wrong: NO_OUTCOME,
    reason: 'an outcome is recorded only over an intent, and nobody looks whether it was',
  },
]

export const KNOWN_OF_EVENTS: Mark[] = [
  {
    meetings: /\| DISCARD_DELIVERIES \| EXTEND_SHARDS \| commit$/,
    wrong: HEARTBEAT,
    reason: 'the heartbeat skips a shard that is locked, and `held` counts it all the same',
  },
  {
    meetings: /\| ASSIGN \| REGISTER_SINKS, then RECONSIDER \| commit$/,
    wrong: 'it was put aside, though a sink that wants it was told that all is reconsidered',
    reason: 'an update does not wait for a row that is just being put aside',
  },
]

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

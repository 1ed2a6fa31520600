/** What waits for a person, or for its source: dead letters, blocked keys, effects whose outcome nobody knows. */
import { LOOK_PARKED, type ParkedFacts } from '../../postgres/sql/doctor-inbox.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look, type Severity } from './check.js'
import { counted, quoted, span, verb } from './words.js'

type Facts = readonly ParkedFacts[]

const DEAD_LETTERS = check<Facts>({
  code: 'dead-letters',
  severity: 'warning',
  why: 'These messages were given up after their last attempt, and stay until somebody retries or discards them.',
  find: (parked, { limits }) =>
    of(parked, 'dead').map(({ consumer, count, oldestMs, olderThanDay, olderThanWeek }) => ({
      severity: unlessYoung(oldestMs, limits.deadMs),
      what: `consumer ${consumer} has ${counted(count, 'dead letter')}, the oldest received ${span(oldestMs)} ago`,
      figures: { consumer, dead: count, oldestMs, olderThanDay, olderThanWeek },
      fix: `await box.admin.retry({ consumer: ${quoted(consumer)}, state: 'dead' })   // or discard, with a reason`,
    })),
})

const KEYS_BLOCKED = check<Facts>({
  code: 'keys-blocked',
  severity: 'serious',
  why: 'With order by key, nothing behind a message that waits for a person runs: every later message of the key waits with it.',
  find: (parked) =>
    parked
      .filter(({ blockedKeys }) => blockedKeys > 0)
      .map(({ consumer, parked: state, blockedKeys, blockedMessages, oldestMs }) => ({
        what: `${counted(blockedKeys, 'key')} of consumer ${consumer} ${verb(blockedKeys, 'is', 'are')} blocked by ${state} messages, and ${counted(blockedMessages, 'message')} ${verb(blockedMessages, 'waits', 'wait')} behind ${verb(blockedKeys, 'it', 'them')}`,
        figures: { consumer, state, keys: blockedKeys, waiting: blockedMessages, oldestMs },
        fix: state === 'quarantined' ? answered(consumer) : `await box.admin.retry({ consumer: ${quoted(consumer)}, state: ${quoted(state)} })   // or discard them; onDead: 'skip' lets later ones pass`, // prettier-ignore
      })),
})

const UNANSWERED = check<Facts>({
  code: 'effects-unanswered',
  severity: 'warning',
  why: 'A call outside the database may have happened or not, and the message waits until somebody finds out.',
  find: (parked, { limits }) =>
    of(parked, 'quarantined').map(({ consumer, count, oldestMs }) => ({
      severity: unlessYoung(oldestMs, limits.deadMs),
      what: `${counted(count, 'message')} of consumer ${consumer} ${verb(count, 'waits', 'wait')} for somebody to say whether ${verb(count, 'its', 'their')} effect happened`,
      figures: { consumer, messages: count, oldestMs },
      fix: answered(consumer),
    })),
})

const NOT_REDELIVERED = check<Facts>({
  code: 'failed-not-redelivered',
  severity: 'warning',
  why: 'They failed on arrival, and wait for their source to deliver them again. A source that has not for so long never will, and no loop runs them.',
  find: (parked, { limits }) =>
    of(parked, 'failed')
      .filter(({ oldestMs }) => oldestMs > limits.deadMs)
      .map(({ consumer, count, oldestMs }) => ({
        what: `${counted(count, 'message')} of consumer ${consumer} failed on arrival, the oldest ${span(oldestMs)} ago, and ${verb(count, 'was', 'were')} not delivered again`,
        figures: { consumer, messages: count, oldestMs },
        fix: `let their source deliver them again; to give them up: await box.admin.discard({ consumer: ${quoted(consumer)}, state: 'pending', before: new Date(Date.now() - ${limits.deadMs}) }, { reason: 'not delivered again' })`,
      })),
})

export const DEAD = family('what waits for a person', readParked, [
  DEAD_LETTERS,
  KEYS_BLOCKED,
  UNANSWERED,
  NOT_REDELIVERED,
])

/** A retry asks nobody whether it happened: it parks again. */
function answered(consumer: string): string {
  return `await box.admin.messages({ consumer: ${quoted(consumer)}, reason: 'effect-unknown' })   // then for each, box.admin.answer: whether it happened`
}

function of(parked: Facts, state: ParkedFacts['parked']): Facts {
  return parked.filter((one) => one.parked === state)
}

function unlessYoung(ms: number, limitMs: number): Severity {
  return ms > limitMs ? 'warning' : 'note'
}

async function readParked({ ask }: Look): Promise<Facts> {
  return (await ask(LOOK_PARKED, null)).map(({ facts }) => readJson(facts))
}

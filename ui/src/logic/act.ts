/** What can be done with one message, and the words that ask before it is done. */
import type { Fate } from '../../../src/dashboard/answers/index.js'
import { adviceFor } from './reasons.js'

export type Verb = 'retry' | 'discard'

export interface Act {
  readonly verb: Verb
  /** On the button that opens the dialog. */
  readonly button: string
  readonly title: string
  readonly sentences: readonly string[]
  /** On the button that acts. */
  readonly confirm: string
  /** Said when it is done. */
  readonly done: string
  /** What somebody who looks at it wants most likely. */
  readonly isWanted: boolean
}

/** Those that make sense for a message in this state. */
export function actsFor(fate: Fate, handledAt: string): readonly Act[] {
  switch (fate.state) {
    case 'handled':
      // What was published is gone.
      return fate.outbox ? [] : [again(handledAt)]
    case 'dead':
    case 'quarantined':
      return [retry(fate), discard()]
    case 'discarded':
      return [retry(fate)]
    case 'pending':
      return [discard()]
    case 'processing':
      return []
  }
}

const OUTBOX = 'It is published again, with all of its attempts.'

function again(handledAt: string): Act {
  return {
    verb: 'retry',
    button: 'Run again…',
    title: 'Run it again?',
    sentences: [`It was handled at ${handledAt}.`, 'Its handler runs a second time.'],
    confirm: 'Run 1 message again',
    done: 'It runs again',
    isWanted: false,
  }
}

function retry(fate: Fate): Act {
  const onRecord = fate.effects.filter(({ state }) => state === 'done').length
  const replayed =
    onRecord === 0
      ? []
      : [
          `${onRecord} ${onRecord === 1 ? 'effect' : 'effects'} on record ${onRecord === 1 ? 'is' : 'are'} replayed, not called again.`,
        ]
  const advice = fate.reason === undefined ? [] : [adviceFor(fate).text]
  return {
    verb: 'retry',
    button: 'Retry…',
    title: `Retry 1 ${fate.state} message?`,
    sentences: [...advice, fate.outbox ? OUTBOX : 'Its handler runs again, with all of its attempts.', ...replayed],
    confirm: 'Retry 1 message',
    done: 'It is pending again',
    // These want something else first: an answer, or another message.
    isWanted: fate.reason !== 'effect-unknown' && fate.reason !== 'conflict' && fate.state !== 'discarded',
  }
}

function discard(): Act {
  return {
    verb: 'discard',
    button: 'Discard…',
    title: 'Discard 1 message?',
    sentences: ['It will not run.', 'You can retry it until retention deletes it.'],
    confirm: 'Discard 1 message',
    done: 'It was discarded',
    isWanted: false,
  }
}

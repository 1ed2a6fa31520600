/** What is to be said of messages that were not ours to run: what they are known for, by consumer. */
import { IS_FRESH, type Horizon } from '../../postgres/sql/inline.js'
import type { Runtime } from '../../runtime.js'
import type { ConsumerDeclaration } from '../consumer.js'
import { quarantined, type Ackable } from '../outcome.js'
import type { Prepared } from '../prepare.js'
import { quarantine, refuse } from '../quarantine.js'
import { classify, confirmKnown, CONFLICT, knownOutcome, tooOld, type Known } from '../receive.js'

export function horizonOf({ name, options }: ConsumerDeclaration): Horizon {
  return { consumer: name, retainMs: options.retainMs, untimed: options.untimed }
}

export interface Judging {
  readonly horizon: Horizon
  /** In the caller's transaction. */
  readonly tx?: unknown
  /** The caller does not know the type. */
  readonly untyped?: boolean
}

/** The outcomes of messages that are known already; undefined for those whose fate is still open. */
export async function judgeKnown(
  runtime: Runtime,
  messages: readonly Prepared[],
  judging: Judging,
): Promise<(Ackable | undefined)[]> {
  const { horizon, tx, untyped } = judging
  const { consumer } = horizon
  const known = await classify(
    runtime,
    messages.map((message) => ({ consumer, message: untyped ? { ...message, type: undefined } : message })),
    tx,
  )
  if (tx === undefined) await confirmKnown(runtime, known)
  const answers: (Ackable | undefined)[] = []
  for (const [at, message] of messages.entries()) {
    const found = known[at]
    if (found === undefined) answers.push(await judgeAge(runtime, message, judging))
    else if (!found.same) {
      await quarantine(runtime, [{ consumer, refused: refuse(message, 'conflict', CONFLICT) }], tx)
      answers.push(quarantined(consumer, 'conflict'))
    } else answers.push(isOpen(found) ? undefined : knownOutcome(consumer, found))
  }
  return answers
}

/** Unknown, and not marked either: too old, or retention has just taken it and it is tried again. */
async function judgeAge(runtime: Runtime, message: Prepared, { horizon, tx }: Judging): Promise<Ackable | undefined> {
  const [row] = await runtime.db.run(IS_FRESH, { ...horizon, at: message.time }, tx)
  if (row!.fresh === 'true') return undefined
  const refused = refuse(message, 'too-old', tooOld(message))
  await quarantine(runtime, [{ consumer: horizon.consumer, refused }], tx)
  return quarantined(horizon.consumer, 'too-old')
}

/** Its fate is not decided: somebody runs it, or will. */
function isOpen({ state }: Known): boolean {
  return state === 'failed' || state === 'pending' || state === 'processing' || state === 'arriving'
}

/** Answer: a person has found out whether an effect happened, and the message that waits for it goes on. */
import { checkKnown } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { ANSWER_EFFECT } from '../postgres/sql/effects.js'
import type { Runtime } from '../runtime.js'

export interface AnswerAt {
  consumer: string
  id: string
  source?: string
  effect: string
}

export type Answer = { happened: true; result?: unknown } | { happened: false }

export async function answer(runtime: Runtime, at: AnswerAt, given: Answer): Promise<void> {
  checkKnown('answer', at, ['consumer', 'id', 'source', 'effect'])
  if (typeof given?.happened !== 'boolean') {
    throw new OnceboxError('OPTION_INVALID', 'answer: say { happened: true, result } or { happened: false }')
  }
  const param = {
    c: at.consumer,
    i: at.id,
    s: at.source ?? null,
    n: at.effect,
    happened: given.happened,
    r: given.happened && given.result !== undefined ? JSON.stringify(given.result) : null,
  }
  const rows = await runtime.db.run(ANSWER_EFFECT, param)
  if (rows.length > 0) return
  throw new OnceboxError(
    'NOT_FOUND',
    `no message ${at.id} of consumer ${at.consumer} waits for an answer about effect '${at.effect}'`,
  )
}

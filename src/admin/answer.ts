/** Answer: a person has found out whether an effect happened, and the message that waits for it goes on. */
import { checkKnown, nameProblem } from '../check-options.js'
import { effectIn, quoteEffect } from '../effects/effect.js'
import { MAX_RESULT_BYTES } from '../effects/outcome.js'
import { OnceboxError } from '../errors.js'
import { ANSWER_EFFECT } from '../postgres/sql/effects.js'
import type { Runtime } from '../runtime.js'
import { message, type At } from './message.js'
import { checkSigned } from './signed.js'
import type { Signed } from './types.js'

export interface AnswerAt {
  consumer: string
  id: string
  source?: string | undefined
  effect: string
}

export type Answer = { happened: true; result?: unknown } | { happened: false }

export async function answer(runtime: Runtime, at: AnswerAt, given: Answer, options: Signed = {}): Promise<void> {
  if (typeof given?.happened !== 'boolean') {
    throw new OnceboxError('OPTION_INVALID', 'answer: say { happened: true, result } or { happened: false }')
  }
  checkKnown('answer', given, given.happened ? ['happened', 'result'] : ['happened'])
  const { happened } = given
  await record(runtime, at, { happened, result: given.happened ? resultText(given.result) : null }, options)
}

/** The same, with the result as JSON text: numbers stay as they were written. */
export async function record(
  runtime: Runtime,
  at: AnswerAt,
  { happened, result }: { readonly happened: boolean; readonly result: string | null },
  options: Signed,
): Promise<void> {
  checkKnown('answer', at, ['consumer', 'id', 'source', 'effect'])
  const { by, reason: why } = checkSigned('answer', options)
  const { consumer, id, source, effect } = at
  // A message without a source has an empty one.
  for (const [name, value] of Object.entries({ consumer, id, effect, ...(source && { source }) })) {
    const problem = nameProblem(value)
    if (problem) throw new OnceboxError('OPTION_INVALID', `answer: ${name} ${problem}`)
  }
  const param = { consumer, id, source: source ?? null, effect, quoted: quoteEffect(effect), happened, result, by, why }
  const rows = await runtime.db.run(ANSWER_EFFECT, param)
  if (rows.some(({ answered }) => answered === 'true')) return
  if (rows.length === 0) {
    const what = `no message ${id} of consumer ${consumer}`
    const others = await effectsThatWait(runtime, { consumer, id, ...(source && { source }) })
    const hint = others.length === 0 ? '' : `; it waits for one about ${others.map(quoteEffect).join(', ')}`
    throw new OnceboxError('NOT_FOUND', `${what} waits for an answer about ${quoteEffect(effect)}${hint}`)
  }
  const sources = [...new Set(rows.map(({ origin }) => origin))].sort().join(', ')
  throw new OnceboxError(
    'FILTER_INVALID',
    `answer: messages ${id} of several sources wait (${sources}); say which source`,
  )
}

/** As the errors of the messages say: an intent may be on record for a call that runs. */
async function effectsThatWait(runtime: Runtime, at: At): Promise<string[]> {
  const entries = await message(runtime, at)
  const waiting = entries.filter(({ state, reason }) => state === 'quarantined' && reason === 'effect-unknown')
  return [...new Set(waiting.flatMap(({ error }) => effectIn(error?.message ?? '') ?? []))]
}

/** The answer is replayed as the outcome: one that cannot be stored is refused before anything is written. */
function resultText(result: unknown): string | null {
  if (result === undefined) return null
  let text: string | undefined
  try {
    text = JSON.stringify(result)
  } catch (error) {
    throw new OnceboxError('OPTION_INVALID', 'answer: result cannot be written as JSON; give plain data', {
      cause: error,
    })
  }
  if (text !== undefined && Buffer.byteLength(text) <= MAX_RESULT_BYTES) return text
  const problem = text === undefined ? `is a ${typeof result}` : `is larger than ${MAX_RESULT_BYTES} bytes`
  throw new OnceboxError('OPTION_INVALID', `answer: result ${problem}; give plain data`)
}

/** Tells what a person found out about an effect. Its result is stored as it was written: no number of it is rounded. */
import { record } from '../../admin/answer.js'
import { MAX_RESULT_BYTES } from '../../effects/outcome.js'
import type { Done } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import { parseExact } from '../exact.js'
import { Problem } from '../problem.js'
import type { RouteInput } from '../routes.js'
import { signed } from './pause.js'

export async function answer(call: BoxCall, input: RouteInput<'answer'>): Promise<Done> {
  const { consumer, id, source, effect, happened, result, reason } = input
  if (result !== undefined) checkResult(result, happened)
  const { stage } = call.part
  const at = { consumer, id, effect, ...(source !== undefined && { source }) }
  await record(stage.runtime, at, { happened, result: result ?? null }, signed(call, reason))
  stage.wake()
  return { done: true }
}

function checkResult(result: string, happened: boolean): void {
  const problem = !happened
    ? 'is what the effect gave, and you say that it did not happen'
    : Buffer.byteLength(result) > MAX_RESULT_BYTES
      ? `must have at most ${MAX_RESULT_BYTES} bytes`
      : parseExact(result) === undefined
        ? 'must be JSON'
        : undefined
  if (problem) throw new Problem('INPUT_INVALID', `result ${problem}`, { field: 'result' })
}

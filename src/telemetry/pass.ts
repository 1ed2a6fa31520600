/** Pass: one transaction. Its end is what became of every handler that ran in it; its settlement has a span of its own. */
import { KIND, type Attributes } from './otel.js'
import { readOrigins, type Processed } from './process.js'
import { aboutAll, attributes, consumedBy, originOf, type OpenSpan, type Spans } from './span.js'

export interface PassTrace {
  /** Runs the settlement of those that ran. */
  settling<T>(done: readonly { readonly message: Processed }[], work: () => T): T
  committed(): void
  failed(error: unknown): void
}

/** Where nobody wants spans. */
export const NO_PASS: PassTrace = {
  settling: (_, work) => work(),
  committed: () => undefined,
  failed: () => undefined,
}

const HANDLED = { 'oncebox.outcome': 'handled' }
const ROLLED_BACK = { 'oncebox.outcome': 'rolled-back' }

export function passOf(spans: Spans, consumer: string, held: readonly Processed[]): PassTrace {
  let settle: OpenSpan | undefined
  readOrigins(held)
  // What is left of an earlier run of a message is over, and stays as it ended.
  const endAll = (outcome: Attributes): void => {
    for (const { span } of held) span?.end(outcome)
  }
  return {
    settling(done, work) {
      const calls = callsOf(done)
      if (calls.length === 0) return work()
      // None of them is in a trace that anybody will see: statements of the settlement are in such a one too.
      if (!calls.some(({ isRecorded }) => isRecorded)) return calls[0]!.run(work)
      // One call settles in its own trace; a group has none, and is linked to each.
      const origin = originOf(calls, ({ context }) => context)
      settle = spans.begin('settle', consumer, KIND.client, origin)
      if (settle?.isRecorded) {
        const messages = done.map(({ message }) => message.message)
        settle.tell({ ...attributes('settle', consumer), ...consumedBy(consumer), ...aboutAll(messages) })
      }
      return settle ? settle.run(work) : work()
    },
    committed() {
      endAll(HANDLED)
      settle?.end(HANDLED)
    },
    failed(error) {
      endAll(ROLLED_BACK)
      settle?.fail(error, ROLLED_BACK)
    },
  }
}

/** Their calls, one after the other. Those of a batch are the same one. */
function callsOf(done: readonly { readonly message: Processed }[]): OpenSpan[] {
  const calls: OpenSpan[] = []
  for (const { message } of done) {
    const { span } = message
    if (span && span !== calls.at(-1)) calls.push(span)
  }
  return calls
}

/** Pass: one transaction. Its end is what became of every handler that ran in it; its settlement has a span of its own. */
import { inContext, KIND, type Attributes } from './otel.js'
import type { Processed } from './process.js'
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

export function passOf(spans: Spans, consumer: string, held: readonly Processed[]): PassTrace {
  let settle: OpenSpan | undefined
  // What is left of an earlier run of a message is over, and stays as it ended.
  const endAll = (outcome: string): void => {
    for (const { span } of held) span?.end({ 'oncebox.outcome': outcome })
  }
  return {
    settling(done, work) {
      const calls = [...new Set(done.flatMap(({ message: { span } }) => span ?? []))]
      if (calls.length === 0) return work()
      // One call settles in its own trace; a group has none, and is linked to each.
      const origin = originOf(calls, ({ context }) => context)
      settle = spans.begin({ ...origin, operation: 'settle', to: consumer, kind: KIND.client, about })
      return settle ? inContext(settle.context, work) : work()

      function about(): Attributes {
        const messages = done.map(({ message }) => message.message)
        return { ...attributes('settle', consumer), ...consumedBy(consumer), ...aboutAll(messages) }
      }
    },
    committed() {
      endAll('handled')
      settle?.end({ 'oncebox.outcome': 'handled' })
    },
    failed(error) {
      endAll('rolled-back')
      settle?.fail(error, { 'oncebox.outcome': 'rolled-back' })
    },
  }
}

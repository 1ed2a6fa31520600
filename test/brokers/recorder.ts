/** A box that is played by hand, for what is particular to a broker. */
import type { Incoming, Message, Outcome } from 'oncebox'

/** Takes everything, unless it is told otherwise for a batch. */
export class Recorder {
  readonly batches: (readonly Incoming[])[] = []

  constructor(
    private readonly answer: (batch: readonly Incoming[]) => Promise<readonly Outcome[] | void> = async () => {},
  ) {}

  get messages(): Incoming[] {
    return this.batches.flat()
  }

  readonly deliver = async (batch: readonly Incoming[]): Promise<readonly Outcome[]> => {
    this.batches.push(batch)
    return (await this.answer(batch)) ?? batch.map((message) => settled(message))
  }
}

/** Taken; or failed, and to be tried again at that time. */
export function settled({ id }: Incoming, failed?: { retryAt: Date }): Outcome {
  if (!failed) return { id, ack: true, status: 'stored', consumers: [] }
  const error = { name: 'Error', message: 'failed' }
  const consumers = [{ consumer: 'c', status: 'failed' as const, error, ...failed }]
  return { id, ack: false, ...failed, status: 'failed', error, consumers }
}

/** An event, as the relay hands it to a sink. */
export function event(id: string, fields: Partial<Message> = {}): Message {
  const common = { source: 'shop', type: 'order.placed', data: { id }, headers: {}, receivedAt: new Date(), attempt: 1 }
  return { id, ...common, correlationId: id, ...fields }
}

const gates = new Set<() => void>()

/** Held until it is let go, or the test has ended. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => undefined
  const passed = new Promise<void>((resolve) => (open = resolve))
  gates.add(open)
  return { passed, open }
}

export function openGates(): void {
  for (const open of gates) open()
  gates.clear()
}

/** Arrivals: messages that run as they come, and what is to be answered of each of them. */
import { takeData, validate } from '../body.js'
import { toMessage } from '../message.js'
import type { HeldMessage } from './held.js'
import { busy, type Ackable } from './outcome.js'
import type { Prepared } from './prepare.js'
import { identityOf } from './identity.js'
import type { Worker } from './run.js'

export interface Arrival extends HeldMessage {
  readonly prepared: Prepared
  /** It was stored before it was marked. */
  known: boolean
  /** What is to be told of it, once that is known. */
  answer: Ackable | undefined
}

export class Arrivals {
  /** What is still to run, in order. */
  readonly queue: Arrival[]
  readonly #all: readonly Arrival[]

  constructor(messages: readonly Arrival[]) {
    this.#all = messages
    this.queue = [...messages]
  }

  answer(message: Arrival, answer: Ackable): void {
    message.answer = answer
    this.leave(message)
  }

  /** Takes it out of the queue: what is to be answered will be found out. */
  leave(message: Arrival): void {
    const at = this.queue.indexOf(message)
    if (at >= 0) this.queue.splice(at, 1)
  }

  has(message: Arrival): boolean {
    return message.answer !== undefined
  }

  /** In the order of the messages. What a box that stops has not started, its sender delivers again. */
  answers(consumer: string): Ackable[] {
    return this.#all.map(({ answer }) => answer ?? busy(consumer))
  }
}

/** Handlers get the output of this parse. */
export async function arrive(worker: Worker, messages: readonly Prepared[]): Promise<Arrival[]> {
  const { runtime, consumer } = worker
  const arrivals: Arrival[] = []
  for (const prepared of messages) {
    const checked = validate(runtime.schemaOf(prepared.type), takeData(prepared))
    const { data, problem, fields } = checked instanceof Promise ? await checked : checked
    const [, source, id] = identityOf(prepared, consumer.name)
    const { type, key, envelope } = prepared
    const row = { id: prepared.id, source: prepared.source, type, key, envelope, receivedMs: Date.now(), attempts: 0 }
    arrivals.push({
      prepared,
      source,
      id,
      n: null,
      type,
      lane: undefined,
      attempts: 0,
      // It may have killed its last worker.
      suspect: prepared.incoming.redelivered === true,
      message: toMessage(row, data),
      problem,
      fields,
      known: false,
      answer: undefined,
    })
  }
  return arrivals
}

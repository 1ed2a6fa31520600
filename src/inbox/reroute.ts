/**
 * Reroute: a message that nobody wanted when it came, and that somebody wanted by the time it was in quarantine.
 *
 * Who registers a consumer releases what is in quarantine then. A message may be put there after that look, by a receiver that had
 * asked before the consumer was there. So the receiver asks again once it has put the message there: a consumer that registers later finds it.
 */
import type { Outcome } from '../message.js'
import { OTHER_CONSUMERS } from '../postgres/sql/receive.js'
import type { Runtime } from '../runtime.js'
import type { Prepared, Refused } from './prepare.js'
import { isMeant, receive, type ReceiveOptions } from './receive.js'
import { releaseUnrouted } from './registry.js'

/** Answers for all of them: as it was, but for what is wanted now. */
export async function reroute(
  runtime: Runtime,
  messages: readonly (Prepared | Refused)[],
  outcomes: Outcome[],
  options: Pick<ReceiveOptions, 'consumers' | 'only'>,
): Promise<Outcome[]> {
  const unrouted = messages.filter((message, at): message is Prepared => isUnrouted(message, outcomes[at]!))
  if (unrouted.length === 0) return outcomes
  const types = [...new Set(unrouted.map(({ type }) => type))]
  const takers = await runtime.db.run(OTHER_CONSUMERS, { types, not: [], keyless: [], unordered: [] })
  if (!takers.some(({ consumer }) => isMeant(consumer, options.only))) return outcomes
  const released = await releaseUnrouted(runtime, options.consumers, types)
  // What somebody else has released is known by now; what nobody could is stored, and its copy in quarantine is one of it.
  const again = await receive(runtime, unrouted, options)
  let next = 0
  return messages.map((message, at) => {
    if (!isUnrouted(message, outcomes[at]!)) return outcomes[at]!
    return released > 0 ? asStored(again[next++]!) : again[next++]!
  })
}

function isUnrouted(message: Prepared | Refused, { reason, consumers }: Outcome & { reason?: string }): boolean {
  return !('reason' in message) && consumers.length === 0 && reason === 'unrouted'
}

/** It is a duplicate of itself: its workers are to be woken. */
function asStored(outcome: Outcome): Outcome {
  if (outcome.status !== 'duplicate') return outcome
  const consumers = outcome.consumers.map(({ consumer }) => ({ consumer, status: 'stored' as const }))
  return { id: outcome.id, ack: outcome.ack, status: 'stored', consumers }
}

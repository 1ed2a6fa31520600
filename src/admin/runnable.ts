/**
 * Runnable: which messages a handler could run again. What an HTTP endpoint or `once` has done, what a removed consumer is
 * remembered for, and what was only recorded as handled, nobody can: pending it would wait for ever, and its result would be gone.
 */
import { OnceboxError } from '../errors.js'
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { NO_CONSUMER } from '../inbox/quarantine.js'
import { unknownConsumers } from '../inbox/registry.js'
import type { State } from '../message.js'
import { isMarked } from '../postgres/sql/rules.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { consumers } from './consumers.js'
import type { CheckedFilter } from './filter.js'

/** By consumer, the types that somebody has said to take, here or in another process. */
type Takers = ReadonlyMap<string, ReadonlySet<string>>

/** The filter without what nobody can run. Throws if it asks for a consumer of which that is all. */
export async function onlyRunnable(
  runtime: Runtime,
  declared: readonly ConsumerDeclaration[],
  filter: CheckedFilter,
  states: readonly State[],
): Promise<CheckedFilter> {
  if (filter.box !== 'inbox') return filter
  const takers = await readTakers(runtime, declared)
  await refuseHandlerless(runtime, takers, filter, states)
  const { judge } = filter
  return {
    ...filter,
    judge: { bodies: judge?.bodies ?? false, fits: (row) => isRunnable(takers, row) && (judge?.fits(row) ?? true) },
  }
}

async function readTakers(runtime: Runtime, declared: readonly ConsumerDeclaration[]): Promise<Takers> {
  const takers = new Map<string, Set<string>>()
  for (const { name, types } of [...(await consumers(runtime, declared)), ...declared]) {
    takers.set(name, new Set([...(takers.get(name) ?? []), ...types]))
  }
  return takers
}

/**
 * What waits for a person, a handler has had, or is to have: of a consumer that is not registered, somebody may still take it when
 * it is delivered again. That it was handled says nothing of a handler. REPLAY judges by the same rule.
 */
function isRunnable(takers: Takers, { consumer, type, envelope, state }: FoundRow): boolean {
  if (consumer === NO_CONSUMER) return true
  if (isMarked(envelope)) return false
  const types = takers.get(consumer)
  return types === undefined ? state !== 'handled' : types.has(type) || types.has('*')
}

async function refuseHandlerless(
  runtime: Runtime,
  takers: Takers,
  { consumer }: CheckedFilter,
  states: readonly State[],
): Promise<void> {
  if (consumer === undefined || consumer === NO_CONSUMER) return
  const types = takers.get(consumer)
  if (types ? types.size > 0 : !states.includes('handled')) return
  // A misspelt one is told as such.
  if (!types && (await unknownConsumers(runtime, [consumer], [...takers.keys()])).length > 0) return
  const what = types
    ? 'has no handlers: it is an HTTP endpoint, which runs when a client asks'
    : 'has no handlers that anybody has declared: it is a name of box.once, or was removed'
  const advice = types
    ? 'to have it done again, a client asks with another key'
    : 'for box.once, do it again under another id; for a consumer, start a process that declares it, and retry then'
  throw new OnceboxError('FILTER_INVALID', `retry: ${JSON.stringify(consumer)} ${what}; ${advice}`)
}

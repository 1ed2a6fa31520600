/**
 * Named statements as pg takes them cheapest. It copies a config property by property, with their descriptors, which takes
 * longer than the rest of what it does to send a short statement. So name and text are inherited from one object for all
 * statements of that name, and values and callback are arguments: there is nothing left to copy. Whoever wraps `query`, as
 * instruments do, reads name and text as ever.
 */
import type { Statement } from './client.js'

interface Named {
  readonly name: string
  readonly text: string
}

/** By name. They are few, as each is prepared on each connection; if somebody makes them up, it begins anew. */
const known = new Map<string, Named>()
const MOST_NAMES = 1_000

/** A config of its own: versions before 8.23.1 write values and callback into it. */
export function named(name: string, text: string): Named {
  let config = known.get(name)
  if (config?.text !== text) {
    if (known.size >= MOST_NAMES) known.clear()
    known.set(name, (config = { name, text }))
  }
  return Object.create(config) as Named
}

/** True if it is a plain config that says nothing but name, text and values. */
export function isNamed(statement: unknown): statement is Statement & Named {
  if (typeof statement !== 'object' || statement === null) return false
  if (Object.getPrototypeOf(statement) !== Object.prototype) return false
  const { name, text } = statement as Partial<Named>
  if (typeof name !== 'string' || name === '' || typeof text !== 'string') return false
  for (const key in statement) if (key !== 'name' && key !== 'text' && key !== 'values') return false
  return true
}

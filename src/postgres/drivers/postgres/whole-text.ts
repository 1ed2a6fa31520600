/**
 * The text of a postgres.js query with all that postgres.js puts into it: fragments, lists of them, names, and the rows of a
 * builder. It reads what the client's `stringify` reads, in the same places. What it does not know has no text, so that
 * nobody takes it for harmless.
 */
import type { Pending } from './gate.js'

/** What `sql(row)`, `sql(rows, ...columns)` and `sql(list)` make. */
interface Builder {
  readonly first: unknown
  readonly rest: readonly unknown[]
}

/** A name that needs no quotes, or several: all that can name a function. */
const NAME = /^[\w.]+$/

/** The whole text, with a parameter for every value; undefined if some of it cannot be read. */
export function wholeText(query: Pending): string | undefined {
  try {
    return query.strings?.length ? fragmentText(query) : undefined
  } catch {
    // A getter in a row, rows within themselves. Thrown in here, it would end the process.
    return undefined
  }
}

function fragmentText({ strings = [], args = [] }: Pending): string {
  return strings.reduce((text, part, at) => text + textOf(args[at - 1]) + part)
}

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return '$1'
  if (Array.isArray(value)) return isFragment(value[0]) ? value.map(listed).join(' ') : '$1'
  // Whatever is more than a value may not be awaited by mistake, and says so in its `then`.
  if (typeof (value as { then?: unknown }).then !== 'function') return '$1'
  if (isFragment(value)) return fragmentText(value)
  if ('first' in value && 'rest' in value && Array.isArray(value.rest)) return builderText(value as Builder)
  if ('value' in value && 'type' in value) return '$1'
  if ('value' in value && typeof value.value === 'string') return value.value
  throw new TypeError('unknown part of a query')
}

function isFragment(value: unknown): value is Pending {
  return value instanceof Promise && Array.isArray((value as Partial<Pending>).strings)
}

function listed(value: unknown): string {
  if (!isFragment(value)) throw new TypeError('unknown part of a list')
  return fragmentText(value)
}

/** Which of the two a list is, names or values, is said by the words before it: names are read in any case. */
function builderText({ first, rest }: Builder): string {
  const rows: readonly unknown[] = Array.isArray(first) ? first : [first]
  const named = rest.flat()
  const columns = named.length > 0 ? named : Object.keys(Object(rows[0]) as object)
  const texts = columns.map((column) => nameText(column))
  for (const row of rows) {
    texts.push(typeof row === 'string' ? nameText(row) : textOf(row))
    if (typeof row !== 'object' || row === null || isFragment(row)) continue
    for (const column of columns) texts.push(textOf((row as Record<string, unknown>)[column as string]))
  }
  return texts.join(', ')
}

function nameText(name: unknown): string {
  return typeof name === 'string' && NAME.test(name) ? `"${name}"` : '$1'
}

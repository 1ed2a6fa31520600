/**
 * Readable: foreign code may throw anything. What cannot be read is replaced where it comes in, so that nobody down the line
 * trips over it: getters that throw, proxies that were revoked, a message that is no text.
 */
import { OnceboxError, Reject, RetryLater } from './errors.js'
import { everyCause } from './failure.js'

const UNREADABLE = 'something was thrown that could not be read'
/** So deep are causes copied; nobody is told of more. */
const MAX_DEPTH = 5

/** What the box reads of an error: no other getter of foreign code is run. */
const TEXTS = ['name', 'message'] as const
const INNER = ['cause', 'errors', 'driverError', 'parent', 'original'] as const
const READ = [
  ...[...TEXTS, ...INNER, 'stack', 'code', 'errno', 'syscall', 'severity', 'detail', 'routine', 'constraint', 'when'],
  ...['position', 'internalPosition', 'internal_position', 'constructor'],
]

/** The same, if all of it can be read; else a copy of what can, of the same class. */
export function readable(error: unknown): unknown {
  return readableAt(error, 0)
}

/** The same for those who take nothing but errors. */
export function readableError(error: unknown): Error {
  const thrown = readable(error)
  return thrown instanceof Error ? thrown : new Error(textOf(thrown))
}

function readableAt(error: unknown, depth: number): unknown {
  try {
    lookAtAll(error)
    return error
  } catch {
    return depth > MAX_DEPTH ? undefined : copyOf(error as object, depth)
  }
}

/** Throws if something of it cannot be read. */
function lookAtAll(error: unknown): void {
  for (const one of everyCause(error)) {
    if (typeof one !== 'object' || one === null) continue
    for (const name of READ) if (name in one) void (one as Record<string, unknown>)[name]
    for (const kind of [OnceboxError, Reject, RetryLater]) void (one instanceof kind)
    if (!(one instanceof Error)) continue
    for (const name of TEXTS) if (typeof one[name] !== 'string') throw new TypeError(`${name} is no text`)
  }
}

function copyOf(error: object, depth: number): unknown {
  try {
    const copy = Object.create(Object.getPrototypeOf(error) as object | null) as Record<PropertyKey, unknown>
    const define = (name: PropertyKey, value: unknown): void =>
      void Object.defineProperty(copy, name, { value, writable: true, configurable: true })
    for (const name of new Set([...Reflect.ownKeys(error), ...READ])) {
      const read = valueOf(error, name)
      // What is inherited and can be read is inherited by the copy too.
      if ('value' in read && !Object.hasOwn(error, name)) continue
      define(name, isInner(name) ? innerOf(read.value, depth + 1) : read.value)
    }
    for (const name of TEXTS) {
      if (typeof copy[name] !== 'string') define(name, copy[name] === undefined ? UNREAD[name] : textOf(copy[name]))
    }
    lookAtAll(copy)
    return copy
  } catch {
    return new Error(UNREADABLE)
  }
}

const UNREAD = { name: 'Error', message: UNREADABLE }

function isInner(name: PropertyKey): boolean {
  return (INNER as readonly PropertyKey[]).includes(name)
}

function innerOf(inner: unknown, depth: number): unknown {
  return Array.isArray(inner) ? inner.map((one) => readableAt(one, depth)) : readableAt(inner, depth)
}

/** Without `value` if it cannot be read. */
function valueOf(error: object, name: PropertyKey): { readonly value?: unknown } {
  try {
    return { value: (error as Record<PropertyKey, unknown>)[name] }
  } catch {
    return {}
  }
}

function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return UNREADABLE
  }
}

/**
 * State that every copy of the package in one process shares. There may be several copies: the ES modules and the CommonJS
 * ones when an application loads both, and one more for each version that was installed. A box of one copy may run on a
 * driver of another, so what one of them notes of an error, a client or a source, the others must find.
 */

/** The value of this name, which the first copy that asks for it makes. Another shape in a later version is another name. */
export function sharedByCopies<T>(name: string, make: () => T): T {
  const key = Symbol.for(`oncebox.${name}`)
  return ((globalThis as Record<symbol, unknown>)[key] ??= make()) as T
}

/** Does the value carry the brand of a class, whichever copy made it? */
export function isBranded(value: unknown, brand: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
}

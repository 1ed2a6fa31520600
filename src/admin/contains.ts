/** Does this JSON contain that one? As PostgreSQL's `@>`: members of objects, any element of arrays, equal scalars. */
export function contains(value: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(value) && part.every((wanted) => value.some((element) => contains(element, wanted)))
  }
  if (typeof part === 'object' && part !== null) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    return Object.entries(part).every(
      ([name, wanted]) =>
        Object.hasOwn(value, name) && contains((value as Readonly<Record<string, unknown>>)[name], wanted),
    )
  }
  return value === part
}

/** Searches that come in parts, most of which may be empty. */

/** So long a search goes on by itself. */
export const PATIENCE_MS = 4_000

interface Part {
  readonly items: readonly unknown[]
  readonly cursor?: string
}

/** The first part that has something, the last there is, or the one at which patience ends. */
export async function firstFound<P extends Part>(
  ask: (cursor: string | undefined) => Promise<P>,
  cursor: string | undefined,
  clock: () => number,
): Promise<P> {
  const until = clock() + PATIENCE_MS
  let part = await ask(cursor)
  while (part.items.length === 0 && part.cursor !== undefined && clock() < until) part = await ask(part.cursor)
  return part
}

/** What may be said of messages of which only the key is at hand: with `redact`, their bodies are read for it to look at. */
import { BODIES } from '../postgres/sql/dashboard.js'
import type { MessageKey } from '../postgres/sql/rules.js'
import type { Runtime } from '../runtime.js'
import { seenBy, type Viewer } from './expose.js'
import type { Seen } from './redact.js'

interface Known {
  readonly consumer: string
  readonly source: string
  readonly id: string
  /** In ms. */
  readonly at: string | number
}

/** Undefined for one that is not there any more. */
export async function seenStored(
  viewer: Viewer,
  { db }: Runtime,
  messages: readonly Known[],
): Promise<(Seen | undefined)[]> {
  if (messages.length === 0) return []
  const keys = messages.map(({ consumer, source, id }): MessageKey => [consumer, source, id])
  const bodies = new Map((await db.run(BODIES, keys)).map((row) => [Number(row.of), row]))
  return messages.map(({ consumer, source, id, at }, of) => {
    const stored = bodies.get(of)
    const found = { consumer, source, id, received: String(at), state: 'dead', fits: 'true', ord: '1' } as const
    return stored && seenBy(viewer, { ...stored, ...found })
  })
}

/** Deletes events that were published, as long as sinks want them kept, and those that were given up, in small batches. */
import { DEFAULT_RETAIN_MS } from '../figures.js'
import { FINISH_SHARED } from '../postgres/sql/shards.js'
import { PRUNE_GIVEN_UP, PRUNE_PUBLISHED } from '../postgres/sql/retain.js'
import type { Runtime } from '../runtime.js'

const BATCH = 1_000

export async function pruneOutbox({ db, metrics }: Runtime, until: { readonly stopping: boolean }): Promise<void> {
  while (!until.stopping) {
    const [row] = await db.run(PRUNE_PUBLISHED, [BATCH])
    metrics.deleted('events', Number(row!.gone))
    if (Number(row!.gone) < BATCH) break
  }
  while (!until.stopping) {
    const rows = await db.run(PRUNE_GIVEN_UP, { limit: BATCH, retainMs: DEFAULT_RETAIN_MS })
    if (rows.length === 0) break
    metrics.deleted('events', rows.length)
    await db.run(FINISH_SHARED, [...new Set(rows.map(({ n }) => n))])
  }
}

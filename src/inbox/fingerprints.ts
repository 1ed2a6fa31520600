/**
 * Fingerprints: an older version records failures without them. The janitor fills them in, a bounded number in each pass, so that a
 * schema with a hundred thousand dead messages has them some minutes after its first process of this version has started.
 */
import { fingerprintOf } from '../fingerprint.js'
import { MARK_FAILURES, UNMARKED } from '../postgres/sql/failures.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { Runtime } from '../runtime.js'

const BATCH = 500
const MOST_BATCHES = 100

export async function fillFingerprints(runtime: Runtime, consumer: string, isStopping: () => boolean): Promise<void> {
  for (let batch = 0; batch < MOST_BATCHES && !isStopping(); batch++) {
    const found = await runUnjitted(runtime.db, UNMARKED, { consumer, limit: BATCH })
    if (found.length === 0) return
    const rows = found.map(({ source, id, digest, ...words }) => [source, id, fingerprintOf(words), digest] as const)
    const filled = await runtime.db.run(MARK_FAILURES, { consumer, rows })
    // The rest is locked, or has failed otherwise meanwhile: the next pass will do.
    if (found.length < BATCH || filled.length === 0) return
  }
}

/** Which message of an id is meant: of that producer, for that consumer; of several in quarantine, that one. */
import type { Fate } from '../../../src/dashboard/answers/index.js'

type Meant = Pick<Fate, 'id' | 'source' | 'consumer' | 'n'>

/** With an empty source too, which is none: left out, it would mean any, and another producer may have the same id. */
export function identityOf({ id, source, consumer, n }: Meant) {
  return { id, source, consumer, ...(n !== undefined && { n }) }
}

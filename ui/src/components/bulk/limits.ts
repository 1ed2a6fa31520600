/** What the server takes at once: as the session says, or as it is by default until that is known. */
import type { Limits } from '../../logic/bulk.js'
import { session } from '../../session.js'

export function limits(): Limits {
  return session.value?.limits ?? { rateAbove: 1_000, mostPerSecond: 10_000 }
}

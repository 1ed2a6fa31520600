/** Asked: queries that somebody has written, as far as others may read them. */
import { maySeeBodies, type Viewer } from './expose.js'
import { scan } from './scan.js'

/** As the search reads it. What it would not take may be anything. */
export function mayRead(viewer: Viewer, query: string): boolean {
  if (maySeeBodies(viewer)) return true
  try {
    return scan(query).every(({ qualifier }) => mayReadCriterion(viewer, qualifier))
  } catch {
    return false
  }
}

/** Words of errors and values of payloads are for who may see bodies; so are keys, where `redact` may hide them. */
export function mayReadCriterion(viewer: Viewer, name: string): boolean {
  if (maySeeBodies(viewer)) return true
  if (name === 'key') return viewer.redact === undefined
  return name !== 'error' && !name.startsWith('data.')
}

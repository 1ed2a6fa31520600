/** Search: messages that fit a query, a page at a time. */
import { looksIntoBodies } from '../../admin/filter.js'
import { find } from '../../admin/messages.js'
import type { Messages } from '../answers/index.js'
import { maySeeBodies, needsBodies, type BoxCall } from '../desk.js'
import { toItem } from '../expose.js'
import { cursorInvalid, Problem } from '../problem.js'
import { parseQuery, type Query } from '../query.js'
import type { RouteInput } from '../routes.js'
import type { Bearer } from '../sign.js'

const BY_DEFAULT = 50
/** What one page may look through before it answers with what it has, and a cursor. */
const LEAN = { most: 6_000, atOnce: 1_000, ms: 150 }
/** Each may have a megabyte. */
const WITH_BODIES = { most: 2_000, atOnce: 100, ms: 150 }

/** What a cursor carries: the query it is for, when its times were read, and where the search stands. */
interface Place {
  readonly q: string
  readonly zone: number
  readonly nowMs: number
  readonly at: string
}

export async function messages(
  call: BoxCall,
  { q = '', zone = 0, cursor, limit = BY_DEFAULT }: RouteInput<'messages'>,
): Promise<Messages> {
  const { part, viewer } = call
  const place =
    cursor === undefined ? { q, zone, nowMs: Date.now(), at: undefined } : readPlace(call, cursor, { q, zone })
  const query = readQuery(call, q, place)
  const bodies = needsBodies(call)
  const examine = bodies || looksIntoBodies(query.filter) ? WITH_BODIES : LEAN
  const found = await find(part.reads, query.filter, { cursor: place.at, limit, bodies, examine })
  return {
    terms: query.terms,
    items: found.rows.map((row) => toItem(viewer, row)),
    ...(found.cursor !== undefined && {
      cursor: call.desk.signer.seal(bearerOf(call), { ...place, at: found.cursor }),
    }),
  }
}

/** A query that this reader may ask. What only bodies tell, only those may ask for who may see them. */
export function readQuery(call: BoxCall, q: string, clock: { readonly nowMs: number; readonly zone: number }): Query {
  const query = parseQuery(q, clock, call.viewer)
  if (query.asksForErrors && call.viewer.redact) {
    throw new Problem('FORBIDDEN', 'error: cannot be searched here: it would find what redact takes out of errors')
  }
  if (!query.needsBodies || maySeeBodies(call.viewer)) return query
  throw new Problem('FORBIDDEN', '‘error:’ and ‘data.’ look into payloads, which takes the right ‘bodies’', {
    needs: 'bodies',
  })
}

function bearerOf({ access, part }: BoxCall): Bearer {
  return { kind: 'page', subject: access.subject, box: part.name }
}

function readPlace(call: BoxCall, cursor: string, { q, zone }: Pick<Place, 'q' | 'zone'>): Place {
  const place = call.desk.signer.open(bearerOf(call), cursor) as Place | undefined
  if (place?.q === q && place.zone === zone) return place
  throw cursorInvalid('query')
}

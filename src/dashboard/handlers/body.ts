/** A body, whole: what is stored, or what `redact` leaves of it. Never as something that a browser would run. */
import type { FoundRow } from '../../postgres/sql/walk.js'
import type { BoxCall } from '../desk.js'
import { seenBy } from '../expose.js'
import { notFound, Problem } from '../problem.js'
import { respond } from '../respond.js'
import type { RouteInput } from '../routes.js'
import { heldAt, rowsAt } from './message.js'

export async function body({ part, viewer }: BoxCall, { n, ...at }: RouteInput<'body'>): Promise<Response> {
  const fitting = n === undefined ? await rowsAt(part.reads, 'ids', at) : [await heldAt(part.reads, n, at)]
  const [row] = fitting
  if (!row) throw notFound('there is no such message, or retention has taken it')
  if (fitting.length > 1 && !isAlike(fitting)) {
    throw new Problem('INPUT_INVALID', 'several consumers or sources have different bodies under this id; say which')
  }
  const seen = seenBy(viewer, row)
  if (seen.unredactable || (row.bytes != null && viewer.redact)) {
    throw new Problem('FORBIDDEN', 'this body cannot be shown: what is secret in it cannot be told from the rest')
  }
  const file = { 'content-disposition': 'attachment; filename="body"' }
  if (row.bytes != null) {
    return respond(Buffer.from(row.bytes, 'base64'), { type: 'application/octet-stream', headers: file })
  }
  return respond(seen.body ?? '', { type: 'text/plain; charset=utf-8', headers: file })
}

function isAlike(rows: readonly FoundRow[]): boolean {
  return rows.every((row) => row.body === rows[0]!.body && row.bytes === rows[0]!.bytes)
}

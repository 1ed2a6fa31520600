/** The audit: what people did. A filter may quote a payload, so it is shown to those who may see bodies. */
import { audit as read } from '../../admin/audit.js'
import type { Audit } from '../answers/index.js'
import { mayRead, mayReadCriterion } from '../asked.js'
import { maySeeBodies, type BoxCall, type BoxViewer } from '../desk.js'
import type { Fingerprints } from '../fingerprints.js'
import { cursorInvalid } from '../problem.js'
import type { RouteInput } from '../routes.js'

const BY_DEFAULT = 50

export async function audit(call: BoxCall, { cursor, limit = BY_DEFAULT }: RouteInput<'audit'>): Promise<Audit> {
  const { desk, access, part, viewer } = call
  const bearer = { kind: 'page', subject: access.subject, box: `audit ${part.name}` } as const
  const place = cursor === undefined ? undefined : desk.signer.open(bearer, cursor)
  if (cursor !== undefined && typeof place !== 'string') throw cursorInvalid('list')
  const page = await read(part.reads, { cursor: place as string | undefined, limit })
  return {
    records: page.records.map(({ at, action, detail, by, role, login }) => ({
      at: at.toISOString(),
      action,
      ...(by !== undefined && { by }),
      ...(role !== undefined && { role }),
      ...(login !== undefined && { login }),
      detail: withoutWords(maySeeBodies(viewer) ? detail : withoutSecrets(viewer, detail), viewer.fingerprints),
    })),
    ...(page.cursor !== undefined && { cursor: desk.signer.seal(bearer, page.cursor) }),
  }
}

/** Fingerprints tell of the words of errors. */
function withoutWords(
  detail: Readonly<Record<string, unknown>>,
  fingerprints: Fingerprints,
): Readonly<Record<string, unknown>> {
  const { filter } = detail
  if (typeof filter === 'string') return { ...detail, filter: fingerprints.showQuery(filter) }
  const { fingerprint } = (filter ?? {}) as { fingerprint?: unknown }
  if (fingerprint === undefined) return detail
  const shown = [fingerprint].flat().map((one) => fingerprints.show(one as string))
  return { ...detail, filter: { ...(filter as object), fingerprint: shown } }
}

/** Details that are known to quote nothing; of filters, the criteria that do not. */
const PLAIN = ['count', 'of', 'reason', 'limit', 'perSecond', 'state', 'job', 'consumer', 'source', 'id', 'effect', 'happened', 'sink', 'discard', 'forget'] // prettier-ignore
const CRITERIA = [
  'box',
  'consumer',
  'state',
  'type',
  'key',
  'id',
  'source',
  'reason',
  'fingerprint',
  'blocking',
  'before',
  'after',
]

function withoutSecrets(viewer: BoxViewer, detail: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { filter } = detail
  return { ...pick(detail, PLAIN), ...(filter !== undefined && { filter: plainFilter(viewer, filter) }) }
}

function plainFilter(viewer: BoxViewer, filter: unknown): unknown {
  if (typeof filter === 'string') return mayRead(viewer, filter) ? filter : '[hidden]'
  if (typeof filter !== 'object' || filter === null) return '[hidden]'
  const shown = CRITERIA.filter((name) => mayReadCriterion(viewer, name))
  return pick(filter as Record<string, unknown>, shown)
}

function pick(from: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => Object.hasOwn(from, name)).map((name) => [name, from[name]]))
}

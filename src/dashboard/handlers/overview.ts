/** The overview of a box, its outbox, and what a query can name. */
import { STATES } from '../../admin/filter.js'
import { QUARANTINE_REASONS } from '../../message.js'
import { VOCABULARY } from '../../postgres/sql/dashboard.js'
import { readJson } from '../../postgres/statement.js'
import type { Outbox, Overview, Vocabulary } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import { readOutbox, shownOverview } from '../overview.js'
import { QUALIFIERS } from '../query.js'

export async function overview({ part, viewer }: BoxCall): Promise<Overview> {
  return shownOverview(viewer, await part.hub.overview())
}

export function outbox({ part, viewer }: BoxCall): Promise<Outbox> {
  return readOutbox(part, part.reads, viewer)
}

export async function vocabulary({ part }: BoxCall): Promise<Vocabulary> {
  const [row] = await part.reads.db.run(VOCABULARY, null)
  const consumers = readJson(row!.consumers)
  return {
    qualifiers: Object.entries(QUALIFIERS).map(([name, { words, bodies }]) => ({ name, words, bodies })),
    states: STATES,
    reasons: QUARANTINE_REASONS,
    consumers: consumers.map(({ name, order }) => ({ name, order })),
    types: [...new Set(consumers.flatMap(({ types }) => types))].filter((type) => type !== '*').sort(),
    sinks: readJson(row!.sinks),
  }
}

/** Lists the sinks there are, and who has them. */
import { GONE_MS } from '../figures.js'
import { SINKS } from '../postgres/sql/admin.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import type { SinkInfo } from './types.js'

export async function sinks({ db }: Runtime): Promise<SinkInfo[]> {
  const rows = await db.run(SINKS, { goneMs: GONE_MS })
  return rows.map(({ name, types, hosts, seen }) => ({
    name,
    ...(types !== null && { types: readJson(types) }),
    processes: readJson(hosts),
    ...(seen !== null && { seenAt: new Date(Number(seen)) }),
  }))
}

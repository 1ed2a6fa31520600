/** Lists consumers: those that are registered, and those that this process has declared. */
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { GONE_MS } from '../figures.js'
import { REGISTERED, type RegisteredRow } from '../postgres/sql/consumers.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import type { ConsumerInfo } from './types.js'

export async function consumers(
  { db }: Runtime,
  declared: readonly ConsumerDeclaration[],
): Promise<readonly ConsumerInfo[]> {
  const rows = await db.run(REGISTERED, { goneMs: GONE_MS })
  const known = rows.map((row) => fromRegistry(row, declared))
  const others = declared.filter(({ name }) => !rows.some((row) => row.name === name))
  return [...known, ...others.map(fromDeclaration)].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function fromRegistry(row: RegisteredRow, declared: readonly ConsumerDeclaration[]): ConsumerInfo {
  return {
    name: row.name,
    types: readJson(row.types),
    order: row.ordered === 'true' ? 'key' : 'none',
    identity: row.identity === 'true',
    retainMs: Number(row.retain_ms),
    paused: row.paused === 'true',
    local: declared.some(({ name }) => name === row.name),
    processes: readJson(row.hosts),
    ...(row.seen !== null && { seenAt: new Date(Number(row.seen)) }),
  }
}

/** Nobody has written it down yet. */
function fromDeclaration({ name, types, options }: ConsumerDeclaration): ConsumerInfo {
  const { order, retainMs } = options
  const identity = options.identity !== undefined
  return { name, types: [...types].sort(), order, identity, retainMs, paused: false, local: true, processes: [] }
}

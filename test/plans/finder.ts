/** Reads the plan that the server makes of a statement, without knowing its parameter, and what it cost to run it. */
import type pg from 'pg'
import { toText } from '../../src/postgres/statement.js'

/** A node of a plan, as `explain (format json)` writes it. */
interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly Plans?: readonly Node[]
}

export interface Found {
  /** Tables that are read from one end to the other. */
  readonly scanned: readonly string[]
  readonly indexes: readonly string[]
  /** By table, the rows that were read to run it; of one that could not be run nothing. */
  readonly rows: ReadonlyMap<string, number>
  /** The most rows that one step of the plan went through, all its rounds together. */
  readonly most: number
}

/**
 * The plan that holds for every parameter, which is what long-lived connections use, and what it read with this one. What the
 * statement does is rolled back, as is the loss of an index that it has to do `without`. One that refuses the sample, as a settlement of nothing does, is planned and not run.
 */
export async function explain(client: pg.ClientBase, text: string, given: unknown, without?: string): Promise<Found> {
  await client.query('begin; set local plan_cache_mode = force_generic_plan; set local jit = off')
  try {
    if (without !== undefined) await client.query(`drop index ${without}`)
    await client.query(`prepare looked_at (text) as ${text}`)
    const execute = `execute looked_at (${client.escapeLiteral(toText(given))})`
    await client.query('savepoint planned')
    const { rows } = await client
      .query<{ 'QUERY PLAN': [{ Plan: Node }] }>(`explain (analyze, timing off, format json) ${execute}`)
      .catch(async (error: unknown) => {
        if (!/^(OB|P0|55P03)/.test((error as { code?: string }).code ?? '')) throw error
        await client.query('rollback to savepoint planned')
        return client.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(`explain (format json) ${execute}`)
      })
    return read([...nodesOf(rows[0]!['QUERY PLAN'][0].Plan)])
  } finally {
    await client.query('rollback')
    await client.query('deallocate all')
  }
}

function* nodesOf(node: Node): Generator<Node> {
  yield node
  for (const inner of node.Plans ?? []) yield* nodesOf(inner)
}

function read(nodes: readonly Node[]): Found {
  const rows = new Map<string, number>()
  for (const node of nodes) {
    const table = node['Relation Name']
    // A bitmap's rows are those of the scan above it, and what is changed was read before.
    if (table === undefined || !/Scan$/.test(node['Node Type'])) continue
    rows.set(table, (rows.get(table) ?? 0) + rowsOf(node))
  }
  return {
    scanned: unique(nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? (node['Relation Name'] ?? []) : []))),
    indexes: unique(nodes.flatMap((node) => node['Index Name'] ?? [])),
    rows,
    most: Math.max(...nodes.map(rowsOf)),
  }
}

function rowsOf(node: Node): number {
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0)
  return ((node['Actual Rows'] ?? 0) + removed) * (node['Actual Loops'] ?? 0)
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort()
}

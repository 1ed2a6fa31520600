/** Storage: dead rows, files that hold little, and tables that autovacuum leaves alone. */
import { LOOK_TABLES, type TableFacts } from '../../postgres/sql/doctor-server.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { size } from './words.js'

type Facts = readonly TableFacts[]

const TABLE_OFF = check<Facts>({
  code: 'autovacuum-off-for-table',
  severity: 'serious',
  why: 'Dead rows of this table are never removed: it grows without end, and what reads it becomes slow.',
  find: (tables, { runtime: { db } }) =>
    tables
      .filter(({ autovacuum }) => !autovacuum)
      .map(({ table }) => ({
        what: `autovacuum is switched off for table ${table}`,
        figures: { table },
        fix: `${db.bind(`alter table ob."${table}" reset (autovacuum_enabled)`)};`,
      })),
})

/** Fewer are what a busy table has between two visits of autovacuum. */
const MANY_DEAD = 100_000

const DEAD_ROWS = check<Facts>({
  code: 'dead-rows',
  severity: 'warning',
  why: 'Claims and reads go past every dead row. Autovacuum does not keep up, or something keeps it from removing them.',
  find: (tables, { runtime: { db } }) =>
    tables
      .filter(({ dead, live }) => dead > MANY_DEAD && dead > live / 2)
      .map(({ table, dead, live }) => ({
        what: `table ${table} has ${dead} dead rows beside ${live} live ones`,
        figures: { table, dead, live },
        fix: `${db.bind(`vacuum (verbose, analyze) ob."${table}"`)};   -- if they stay: see who pins them`,
      })),
})

const ROOMY_BYTES = 32 * 1_048_576
const LARGE_BYTES = 1024 * 1_048_576

const BLOATED = check<Facts>({
  code: 'table-bloated',
  severity: 'note',
  why: 'The file is mostly empty: reads of the whole table, backups and vacuum go through all of it. As after a backlog that was worked off.',
  find: (tables, { runtime: { db } }) =>
    tables
      .filter(({ bytes, neededBytes }) => neededBytes !== null && bytes > ROOMY_BYTES && bytes > neededBytes * 4)
      .map(({ table, bytes, neededBytes }) => ({
        ...(bytes > LARGE_BYTES && { severity: 'warning' as const }),
        what: `table ${table} takes ${size(bytes)}, and its rows need about ${size(neededBytes!)}`,
        figures: { table, bytes, neededBytes: neededBytes! },
        fix: `${db.bind(`vacuum (full, analyze) ob."${table}"`)};   -- locks the table while it runs; pg_repack does not`,
      })),
})

export const STORAGE = family('the tables', readTables, [TABLE_OFF, DEAD_ROWS, BLOATED])

async function readTables({ ask }: Look): Promise<Facts> {
  return (await ask(LOOK_TABLES, null)).map(({ facts }) => readJson(facts))
}

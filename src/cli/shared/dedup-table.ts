/**
 * A table of somebody else's that says which messages were handled, read page by page along its ids. Names come from the server's
 * catalog, quoted by it: what people type is a value, never SQL.
 */
import { nameProblem } from '../../check-options.js'
import { nearest } from '../../nearest.js'
import type { HandledId } from '../../admin/index.js'
import { isOnCalendar } from '../../figures.js'
import type { Driver } from '../../postgres/driver.js'
import { sqlState } from '../../postgres/errors.js'
import { isAway } from '../connect/problem.js'
import { failed, misused, type Exit } from '../exit.js'

export interface Columns {
  readonly id: string
  readonly source: string | undefined
  readonly type: string | undefined
  readonly at: string | undefined
  /** Only rows with these values. */
  readonly only: readonly { readonly column: string; readonly value: string }[]
}

export interface DedupTable {
  /** For people, with its schema. */
  readonly name: string
  /** How many rows there are. Throws if one has no id, or no type where a column is to say it. */
  count(): Promise<number>
  /** Rows in the order of their ids, behind this id. */
  page(after: string | undefined): Promise<Page>
}

/** What a row may have that no message can. */
export type Unfit = 'id' | 'source' | 'type' | 'time'

export interface Page {
  readonly ids: readonly HandledId[]
  /** Of each row that is not among the ids, what is wrong with it. */
  readonly unfit: readonly Unfit[]
  /** The last id, as text: all of its rows are in the page. Undefined at the end. */
  readonly next: string | undefined
}

interface Column {
  readonly name: string
  readonly quoted: string
  readonly type: string
  /** The type under a domain. */
  readonly base: string
  readonly category: string
}

type Row = Readonly<Record<string, string | null>>

const PAGE_ROWS = 5_000

const FIND = `select pg_catalog.to_regclass($1::text)::pg_catalog.oid::text found`
const NAME = `select pg_catalog.format('%I.%I', n.nspname, c.relname) as name
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = $1::text::pg_catalog.oid`
const COLUMNS = `select a.attname::text as name, pg_catalog.format('%I', a.attname) as quoted,
  pg_catalog.format_type(a.atttypid, a.atttypmod) as type, t.typcategory::text as category,
  pg_catalog.format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null) as base
from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attrelid = $1::text::pg_catalog.oid and a.attnum > 0 and not a.attisdropped`

export async function openDedupTable(
  driver: Driver<unknown, unknown>,
  given: string,
  columns: Columns,
): Promise<DedupTable> {
  const query = async (text: string, values: readonly unknown[]): Promise<Row[]> =>
    (await driver.query(text, [...values])) as Row[]
  const oid = await query(FIND, [given]).then(
    ([row]) => row?.['found'],
    (error: unknown) => {
      // A name that is none is refused by the server; a connection that was lost says nothing of the table.
      if (sqlState(error) === undefined || isAway(error)) throw error
      return undefined
    },
  )
  if (oid === undefined || oid === null) {
    throw misused(`there is no table ${given} here`, 'write it as schema.table; names with capitals in double quotes')
  }
  const [{ name } = {}] = await query(NAME, [oid])
  const known = (await query(COLUMNS, [oid])) as unknown as Column[]
  const { text, count, holes, values } = statementsOf(String(name), known, columns)
  return {
    name: String(name),
    async count() {
      const [row] = await query(count, values).catch((error: unknown): never => {
        throw sqlState(error) === '42501' ? unreadable(String(name), error as Error) : error
      })
      for (const hole of holes) {
        if (row![hole.what] === '0') continue
        const [example] = await query(hole.example, values).catch((): Row[] => [])
        throw hollow(String(name), hole, { count: row![hole.what]!, example: example?.['example'] ?? undefined })
      }
      return Number(row!['count'])
    },
    async page(after) {
      const rows = after === undefined ? await query(text.first, values) : await query(text.behind, [...values, after])
      const read = rows.map(toHandled)
      const ids = read.filter((one) => unfitOf(one) === undefined)
      const unfit = read.map(unfitOf).filter((one) => one !== undefined)
      const next = rows.length < PAGE_ROWS ? undefined : rows.at(-1)!['id']!
      return { ids, unfit, next }
    },
  }
}

/** What every row has to have. */
interface Hole {
  readonly what: 'id' | 'type'
  readonly column: Column
  /** Finds one row without it. */
  readonly example: string
}

/** Without an id nothing is remembered, and without its type copies of any type: neither is what the table says. */
function hollow(
  table: string,
  { what, column }: Hole,
  { count, example }: { readonly count: string; readonly example: string | undefined },
): Exit {
  const named = what === 'id' ? 'one is at ctid' : 'the id of one is'
  const one = example === undefined ? '' : `, ${named} ${example}`
  return failed(
    `${count} rows of ${table} have no ${what} (${column.name} is null)${one}; nothing was imported`,
    `look at them: select * from ${table} where ${column.quoted} is null; then correct them, or import from a view that leaves them out`,
  )
}

function toHandled(row: Row): HandledId {
  const { id, source, type, at } = row
  return {
    id: id!,
    ...(source !== undefined && source !== null && { source }),
    // Written since the rows were counted: no name, and left out.
    ...(type !== undefined && { type: type ?? '\0' }),
    ...(at !== undefined && at !== null && { at: new Date(Number(at)) }),
  }
}

/** As markHandled would refuse it, and all rows behind it. */
function unfitOf({ id, source = '', type = '', at }: HandledId): Unfit | undefined {
  if (nameProblem(id)) return 'id'
  if (source !== '' && nameProblem(source)) return 'source'
  if (type !== '' && nameProblem(type)) return 'type'
  return at === undefined || isOnCalendar(at) ? undefined : 'time'
}

/**
 * The statements. Several rows may have one id, of several sources or types, or of none that is named here: a page ends with all
 * rows of its last id, and the next one begins behind that id.
 */
function statementsOf(table: string, known: readonly Column[], columns: Columns) {
  const column = (name: string): Column => columnOf(table, known, name)
  const id = column(columns.id)
  const source = columns.source === undefined ? undefined : column(columns.source)
  const type = columns.type === undefined ? undefined : column(columns.type)
  const at = columns.at === undefined ? undefined : column(columns.at)
  if (at && at.category !== 'D') throw misused(`column ${at.name} of ${table} is ${at.type}, and no time`)
  if (at && /^time\b/.test(at.base))
    throw misused(`column ${at.name} of ${table} is ${at.type}: a time without its date`)
  const selected = [
    `${id.quoted}::text as id`,
    ...(source ? [`coalesce(${source.quoted}::text, '') as source`] : []),
    ...(type ? [`${type.quoted}::text as type`] : []),
    ...(at ? [`${msOf(`${at.quoted}::timestamptz`)} as at`] : []),
  ]
  const values = columns.only.map(({ value }) => value)
  const chosen = ['true', ...columns.only.map((one, n) => `${column(one.column).quoted}::text = $${n + 1}::text`)]
  const where = [`${id.quoted} is not null`, ...chosen].join(' and ')
  const lacks = (what: Hole['what'], lacking: Column, shown: string): Hole => ({
    ...{ what, column: lacking },
    example: `select ${shown}::text as example from ${table} where ${lacking.quoted} is null and ${chosen.join(' and ')} limit 1`,
  })
  // A view has no ctid: then none is named.
  const holes = [lacks('id', id, 'ctid'), ...(type ? [lacks('type', type, id.quoted)] : [])]
  const counts = holes.map((hole) => `(count(*) filter (where ${hole.column.quoted} is null))::text as ${hole.what}`)
  const behind = ` and ${id.quoted} > $${values.length + 1}::text::${id.type}`
  const read = (more: string): string =>
    `select ${selected.join(', ')} from ${table} where ${where}${more} order by ${id.quoted} fetch first ${PAGE_ROWS} rows with ties`
  return {
    ...{ values, holes },
    count: `select count(*)::text as count, ${counts.join(', ')} from ${table} where ${chosen.join(' and ')}`,
    text: { first: read(''), behind: read(behind) },
  }
}

/** Infinity is no number of milliseconds, and no time of a message. */
function msOf(time: string): string {
  return `case when isfinite(${time}) then (extract(epoch from ${time}) * 1000)::bigint::text when ${time} is not null then 'infinite' end`
}

function columnOf(table: string, known: readonly Column[], name: string): Column {
  const found = known.find((one) => one.name === name)
  if (found) return found
  const names = known.map((one) => one.name)
  // A column that is called after what it is of: id, message_id.
  const near = nearest(name, names) ?? names.find((one) => one.toLowerCase().endsWith(`_${name.toLowerCase()}`))
  throw misused(`${table} has no column ${name}`, near ? `did you mean ${near}?` : `it has ${names.join(', ')}`)
}

/** The table is the user's own: no role of oncebox has a right to it. */
function unreadable(name: string, { message }: Error): Exit {
  return failed(
    `the role that you connect as may not read ${name}: ${message}`,
    `grant select on ${name} to that role, and usage on its schema; or connect as one that may`,
  )
}

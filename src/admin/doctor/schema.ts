/** The schema: its version, and whether its objects are those that the migrations made. */
import { readVersion, SCHEMA_VERSION, type SchemaVersion } from '../../postgres/migrate.js'
import { LOOK_OBJECTS, type ObjectRow } from '../../postgres/sql/doctor-server.js'
import { check, family, type Found, type Look } from './check.js'
import { EXPECTED } from './expected.generated.js'

const MISSING = check<SchemaVersion>({
  code: 'schema-missing',
  severity: 'serious',
  why: 'Without its tables a box can neither store nor handle anything.',
  find: ({ version }, { runtime: { db } }) =>
    version > 0 ? [] : [{ what: `schema ${db.schema} has no tables of oncebox`, figures: { needed: SCHEMA_VERSION }, fix: 'await box.migrate()' }], // prettier-ignore
})

const OUTDATED = check<SchemaVersion>({
  code: 'schema-outdated',
  severity: 'serious',
  why: 'This version of oncebox does not start on an older schema.',
  find({ version }, { runtime: { db } }) {
    if (version === 0 || version >= SCHEMA_VERSION) return []
    const what = `schema ${db.schema} has version ${version}, this version of oncebox needs ${SCHEMA_VERSION}`
    return [{ what, figures: { version, needed: SCHEMA_VERSION }, fix: 'await box.migrate()' }]
  },
})

const NEWER = check<SchemaVersion>({
  code: 'schema-newer',
  severity: 'note',
  why: 'Somebody has migrated the schema with a newer oncebox. What is older works as long as the schema allows it.',
  find({ version, compatibleFrom }, { runtime: { db } }) {
    if (version <= SCHEMA_VERSION) return []
    const refused = compatibleFrom > SCHEMA_VERSION
    const what = `schema ${db.schema} has version ${version}, this version of oncebox knows ${SCHEMA_VERSION}${refused ? ', and is refused by it' : ''}`
    return [
      {
        ...(refused && { severity: 'serious' as const }),
        what,
        figures: { version, compatibleFrom, known: SCHEMA_VERSION },
        fix: 'npm install oncebox@latest',
      },
    ]
  },
})

export const SCHEMA = family('the version of the schema', ({ runtime }) => readVersion(runtime.db), [
  MISSING,
  OUTDATED,
  NEWER,
])

interface Drift {
  readonly missing: readonly ObjectRow[]
  readonly changed: readonly { readonly is: ObjectRow; readonly was: string }[]
  readonly extra: readonly ObjectRow[]
  readonly broken: readonly ObjectRow[]
}

const NOTHING: Drift = { missing: [], changed: [], extra: [], broken: [] }

const OBJECT_MISSING = check<Drift>({
  code: 'object-missing',
  severity: 'serious',
  why: 'Statements of oncebox name it, and fail without it.',
  find: ({ missing }, look) =>
    missing
      .filter(({ kind }) => kind !== 'index')
      .map(({ kind, name }) => ({
        what: `${kind} ${name} is missing from schema ${look.runtime.db.schema}`,
        figures: { kind, name },
        fix: rebuilt(look),
      })),
})

const OBJECT_CHANGED = check<Drift>({
  code: 'object-changed',
  severity: 'serious',
  why: 'The promises of oncebox rest on what the migrations made: a table without a log is empty after a crash, a column of another type fails.',
  find: ({ changed }, look) =>
    changed.map(({ is: { kind, name, detail }, was }) => ({
      what: `${kind} ${name} is not what the migrations made of it${kind === 'function' ? '' : `: it is ${detail || 'logged'}, and was ${was || 'logged'}`}`,
      figures: { kind, name },
      fix:
        kind === 'table' && was === ''
          ? `${look.runtime.db.bind(`alter table ob."${name}" set logged`)}`
          : kind === 'index'
            ? recreated(look, name, was)
            : rebuilt(look),
    })),
})

const INDEX_MISSING = check<Drift>({
  code: 'index-missing',
  severity: 'serious',
  why: 'Claims, retention and searches rely on their indexes: without one they read the whole table, and what is unique no longer is.',
  find: ({ missing }, look) =>
    missing
      .filter(({ kind }) => kind === 'index')
      .map(({ name, detail }) => ({
        what: `index ${name} is missing`,
        figures: { name },
        fix: `${look.runtime.db.bind(keyOrIndex(name, detail))};`,
      })),
})

const BROKEN = check<Drift>({
  code: 'object-broken',
  severity: 'serious',
  why: 'An index that is not valid is written to and never read; a trigger that is off counts nothing.',
  find: ({ broken }, look) =>
    broken.map(({ kind, name }) => ({
      what: `${kind} ${name} is ${kind === 'index' ? 'not valid, as after a CREATE INDEX CONCURRENTLY that failed' : 'switched off'}`,
      figures: { kind, name },
      fix: mended(look, kind, name),
    })),
})

const EXTRA = check<Drift>({
  code: 'object-extra',
  severity: 'note',
  why: 'An index or a trigger on the tables of oncebox makes every message dearer, and other objects are in the way of migrations to come.',
  find({ extra }, { runtime: { db } }) {
    if (extra.length === 0) return []
    const names = extra.map(({ kind, name }) => `${kind} ${name}`)
    const shown = names.slice(0, 10).join(', ') + (names.length > 10 ? ', …' : '')
    return [
      {
        ...(extra.some(({ kind }) => kind === 'trigger') && { severity: 'warning' as const }),
        what: `schema ${db.schema} has objects that no migration made: ${shown}`,
        figures: { objects: extra.length, names: shown },
        fix: `move them to a schema of your own, as with ${db.bind('alter table ob.<name> set schema <yours>')}, or drop them`,
      },
    ]
  },
})

export const DRIFT = family('the objects of the schema', readDrift, [
  OBJECT_MISSING,
  OBJECT_CHANGED,
  INDEX_MISSING,
  BROKEN,
  EXTRA,
])

/** Of a schema that is newer than this version nothing is known. */
async function readDrift({ runtime: { db }, ask }: Look): Promise<Drift> {
  if ((await readVersion(db)).version !== SCHEMA_VERSION) return NOTHING
  const rows = await ask(LOOK_OBJECTS, { own: db.bind('ob.') })
  const there = new Map(rows.map((row) => [keyOf(row), row]))
  const expected = new Map(EXPECTED.map(([kind, name, detail]) => [`${kind} ${name}`, { kind, name, detail }]))
  // Columns of a table that is missing, or extra, say nothing more.
  const whole = (one: ObjectRow, among: ReadonlyMap<string, unknown>): boolean =>
    !['column', 'index', 'trigger', 'constraint'].includes(one.kind) || among.has(`table ${tableOf(one)}`) || among.has(`view ${tableOf(one)}`) // prettier-ignore
  return {
    missing: [...expected.values()]
      .filter((one) => !there.has(keyOf(one)))
      .map((one) => ({ ...one, broken: 'false' as const }))
      .filter((one) => whole(one, there)),
    changed: rows.flatMap((row) => {
      const was = expected.get(keyOf(row))?.detail
      return was === undefined || was === row.detail ? [] : [{ is: row, was }]
    }),
    extra: rows.filter((row) => !expected.has(keyOf(row)) && whole(row, expected)),
    broken: rows.filter(({ broken }) => broken === 'true'),
  }
}

function keyOf({ kind, name }: Pick<ObjectRow, 'kind' | 'name'>): string {
  return `${kind} ${name}`
}

function tableOf({ kind, name, detail }: ObjectRow): string {
  return kind === 'index' ? (/ ON (?:ONLY )?ob\.(\w+) /.exec(detail)?.[1] ?? '') : name.split('.')[0]!
}

function rebuilt({ runtime: { db } }: Look): Found['fix'] {
  return `restore it from what migrationSql({ schema: ${JSON.stringify(db.schema)} }) prints`
}

/** A primary key is more than its index: its columns are not null, and what replicates the table goes by it. */
function primaryKeyOf(detail: string): { readonly table: string; readonly columns: string } | undefined {
  const [, table, columns] = /^CREATE UNIQUE INDEX \w+_pkey ON ob\.(\w+) USING btree (\(.*\))$/.exec(detail) ?? []
  return table === undefined || columns === undefined ? undefined : { table, columns }
}

function keyOrIndex(name: string, detail: string): string {
  const key = primaryKeyOf(detail)
  return key ? `alter table ob."${key.table}" add constraint "${name}" primary key ${key.columns}` : detail
}

function recreated({ runtime: { db } }: Look, name: string, was: string): string {
  const key = primaryKeyOf(was)
  if (!key) return `${db.bind(`drop index ob."${name}"`)}; ${db.bind(was)};`
  // The server drops no index of a constraint. In one statement the table is never without its key.
  const changes = `drop constraint "${name}", add constraint "${name}" primary key ${key.columns}`
  return `${db.bind(`alter table ob."${key.table}" ${changes}`)};`
}

function mended({ runtime: { db } }: Look, kind: ObjectRow['kind'], name: string): string {
  const [table, own] = name.split('.')
  if (kind === 'index') return `${db.bind(`reindex index concurrently ob."${name}"`)};`
  if (kind === 'trigger') return `${db.bind(`alter table ob."${table}" enable trigger "${own}"`)};`
  return `${db.bind(`alter table ob."${table}" validate constraint "${own}"`)};`
}

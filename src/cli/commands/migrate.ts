/** `oncebox migrate`: the schema of the box. */
import { command } from '../command.js'
import { EXIT } from '../exit.js'
import { flag, integer as whole, text } from '../option.js'
import { paint } from '../output/text.js'
import { integer, object, oneOf, string } from '../shape.js'

export const migrateUp = command({
  noun: 'migrate',
  verb: 'up',
  summary: 'Bring the schema up to date, under a lock.',
  details: ['Safe to run from many processes at once, and again: what is done already is not done twice.'],
  example: 'oncebox migrate up --url postgres://app@localhost:5432/orders',
  connects: true,
  output: object({ from: integer, to: integer }),
  async run({ out, connect }) {
    const { box, schema } = await connect({ schema: 'any' })
    const { from, to } = await box.migrate()
    if (out.json) return out.document({ from, to })
    const { SCHEMA_VERSION } = await import('../../postgres/migrate.js')
    if (to > SCHEMA_VERSION) {
      const than = `newer than this oncebox (${SCHEMA_VERSION})`
      out.line(`schema ${schema} is at version ${to}, which is ${than}; nothing was changed`)
    } else if (from === to) out.line(`schema ${schema} is at version ${to} already`)
    else if (from === 0) out.line(`schema ${schema} created, at version ${to}`)
    else out.line(`schema ${schema}: version ${from} → ${to}`)
  },
})

export const migrateStatus = command({
  noun: 'migrate',
  verb: 'status',
  summary: 'Say which version the schema has, and which one this oncebox needs.',
  details: ['Ends with 3 unless the schema can be used as it is.'],
  example: 'oncebox migrate status --json',
  connects: true,
  exits: [EXIT.unhealthy],
  output: object({
    ...{ schema: string, version: integer, needs: integer },
    state: oneOf('current', 'missing', 'behind', 'ahead', 'newer'),
  }),
  async run({ out, options, connect }) {
    const { db, schema } = await connect({ schema: 'any' })
    const { flagsOf } = await import('../connect/place.js')
    const { readVersion, SCHEMA_VERSION: needs } = await import('../../postgres/migrate.js')
    const { version, compatibleFrom } = await readVersion(db)
    const state = stateOf(version, compatibleFrom, needs)
    const usable = state === 'current' || state === 'ahead'
    if (out.json) out.document({ schema, version, needs, state })
    else {
      out.line(`schema ${schema}: `, paint(usable ? 'green' : 'yellow', state), `, version ${version}, needs ${needs}`)
      if (!usable) out.note(state === 'newer' ? 'upgrade oncebox here' : `run: oncebox migrate up${flagsOf(options)}`)
    }
    return usable ? EXIT.ok : EXIT.unhealthy
  },
})

/** `ahead`: newer than this oncebox knows, which still works with it. */
function stateOf(version: number, compatibleFrom: number, needs: number): string {
  if (version === 0) return 'missing'
  if (version < needs) return 'behind'
  if (version === needs) return 'current'
  return compatibleFrom > needs ? 'newer' : 'ahead'
}

export const migrateSql = command({
  noun: 'migrate',
  verb: 'sql',
  summary: 'Print the SQL of a migration, for whoever changes your databases.',
  details: [
    'One transaction, which makes the same schema as oncebox migrate up, and refuses to run on another version than --from.',
    'With --roles: the SQL that creates the roles owner, producer, worker, janitor and viewer, and gives each the least rights. Run it after every migration.',
  ],
  example: 'oncebox migrate sql --schema billing > billing.sql',
  options: {
    from: whole('The version that the schema has; 0: there is none yet.', { least: 0, fallback: 0 }),
    roles: flag('Print the roles and their grants instead.'),
    schema: text('The schema of the box (default: that of the config, else oncebox).', 'name'),
    config: text('The config file (default: oncebox.config.ts, .mts, .js, .mjs or .cjs here).', 'path'),
  },
  async run({ out, options, config }) {
    const { migrationSql } = await import('../../postgres/migrate.js')
    const { rolesSql } = await import('../../postgres/roles.js')
    const schema = options.schema ?? (await config())?.schema ?? 'oncebox'
    const sql = options.roles ? rolesSql({ schema }) : migrationSql({ schema, from: options.from })
    out.verbatim(sql.endsWith('\n') ? sql : `${sql}\n`)
  },
})

/**
 * Roles: the least rights with which each part of a service does its work.
 *
 *   owner     owns the schema, and migrates it
 *   producer  sends: writes events to the outbox, and can read neither them nor anything else
 *   worker    receives, handles, publishes and administers: what a box that is started needs
 *   janitor   prunes
 *   viewer    reads: status, messages with their payloads, the audit
 *   reader    reads the views, which have no payloads, and nothing else: for dashboards and reports in SQL
 *
 * Of all but the owner none can change or delete a row of the audit, nor choose the role that it names.
 */
import { nameProblem } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { checked, nested, optional, resolve } from '../options.js'
import { bindTo } from './database.js'
import { SCHEMA } from './schema.js'

export type Role = 'owner' | 'producer' | 'worker' | 'janitor' | 'viewer' | 'reader'

const ROLES: readonly Role[] = ['owner', 'producer', 'worker', 'janitor', 'viewer', 'reader']

/** The views: a contract, see docs/views.md. */
export const VIEWS: readonly string[] = ['messages', 'outbox_events', 'lag']

const ALL = 'select, insert, update, delete'
/** The rest of a row is the server's to fill in. */
const NOTE = 'insert (action, detail, actor), select (n)'

/** Table or view → rights. To lock a row takes the right to update one of its columns. */
export const GRANTS: Readonly<Record<Exclude<Role, 'owner' | 'viewer'>, Readonly<Record<string, string>>>> = {
  producer: {
    outbox: 'insert (source, id, type, key, body, hash, envelope), select (n, source, id, type)',
    delivery: 'insert (n, sink, shard, key, due_at, waiting)',
    sink: 'select (name, types)',
    sink_set: 'select (version)',
    sink_version: 'select',
  },
  worker: {
    ...Object.fromEntries(
      [
        ...['message', 'work', 'lane', 'handled', 'attempt', 'effect', 'quarantine', 'forgotten', 'open_group'],
        'quarantine_account',
        ...['outbox', 'delivery', 'shard', 'sink', 'sink_declaration', 'catch_up', 'removed_sink', 'consumer_process'],
        ...['minute', 'sink_minute', 'bulk', 'bulk_message'],
      ].map((table) => [table, ALL]),
    ),
    sink_set: 'select, update',
    reading: 'select, update',
    consumer: ALL,
    subscription: 'select, insert, delete',
    schema_version: 'select',
    secret: 'select',
    audit: 'select, insert (action, detail, actor)',
  },
  janitor: {
    message: 'select, delete, update (result)',
    work: 'select, delete',
    lane: 'select, delete, update (dirty)',
    handled: 'select, delete',
    attempt: 'select, delete',
    effect: 'select, delete',
    quarantine: 'select, delete, update (discarded)',
    quarantine_account: 'select, insert, update',
    forgotten: 'select, insert, update',
    outbox: 'select, delete, update (published_at)',
    delivery: 'select, delete, update (error)',
    consumer: 'select',
    sink: 'select',
    minute: 'select, delete, update (at)',
    sink_minute: 'select, delete, update (at)',
    bulk: 'select, delete',
    schema_version: 'select',
    audit: NOTE,
  },
  reader: Object.fromEntries(VIEWS.map((view) => [view, 'select'])),
}

/** What statements, views and other functions call. Triggers need nobody's right. */
export const FUNCTIONS: readonly string[] = [
  ...['now', 'refuse', 'refuse_forgotten', 'margin', 'is_fresh', 'close_transaction', 'settle_one', 'missing_ability'],
  ...['resume_parked', 'register_sinks', 'quarantine_bytes', 'quarantine_used', 'remove_consumer', 'remove_lanes'],
  ...['receive_one', 'front_of'],
]

export interface RolesOptions {
  /** The schema of the box. Default: `oncebox`. */
  schema?: string
  /** Other names than `<schema>_owner` and so on. */
  roles?: Partial<Record<Role, string>>
}

/** `quoteRole` says what it may be. */
const ROLE_NAME = optional(checked((_, given: string) => given))
const OPTIONS = {
  schema: SCHEMA,
  roles: nested({
    owner: ROLE_NAME,
    producer: ROLE_NAME,
    worker: ROLE_NAME,
    janitor: ROLE_NAME,
    viewer: ROLE_NAME,
    reader: ROLE_NAME,
  }),
}

/**
 * SQL that creates the roles, none of which may log in, and gives each its rights: run it once the schema is migrated, and
 * again after every migration. Then grant the roles to those that log in. It takes nothing from roles that it does not name.
 */
export function rolesSql(options: RolesOptions = {}): string {
  const { schema, roles } = resolve('rolesSql', options, OPTIONS)
  const names = namesOf(schema, roles)
  const bind = bindTo(schema)
  const own = bind('ob.').slice(0, -1)
  const role = (which: Role): string => quoteRole(which, names[which])
  const given = (Object.keys(GRANTS) as (keyof typeof GRANTS)[]).flatMap((which) =>
    Object.entries(GRANTS[which]).map(
      ([table, rights]) => bind(`grant ${rights} on ob.${table} to `) + `${role(which)};`,
    ),
  )
  const calling = (['producer', 'worker', 'janitor', 'viewer'] as const).map(role).join(', ')
  const runtime = `${calling}, ${role('reader')}`
  return [
    ...ROLES.map((which) => createRole(names[which], role(which))),
    ownership(schema, own, role('owner')),
    ...['tables', 'sequences', 'functions'].map((all) => `revoke all on all ${all} in schema ${own} from ${runtime};`),
    `revoke all on schema ${own} from ${runtime};`,
    `grant usage on schema ${own} to ${runtime};`,
    // Everybody has it, unless the database was told otherwise.
    bind(`grant execute on function ${FUNCTIONS.map((name) => `ob.${name}`).join(', ')} to `) + `${calling};`,
    // A view runs with the rights of its owner, but for the functions in it.
    bind('grant execute on function ob.now to ') + `${role('reader')};`,
    ...given,
    `grant select on all tables in schema ${own} to ${role('viewer')};`,
    `grant usage on all sequences in schema ${own} to ${role('worker')};`,
    '',
  ].join('\n')
}

function namesOf(schema: string, roles: Partial<Record<Role, string>>): Record<Role, string> {
  const names = Object.fromEntries(ROLES.map((which) => [which, roles[which] ?? `${schema}_${which}`]))
  for (const [n, which] of ROLES.entries()) {
    const twin = ROLES.slice(0, n).find((other) => names[other] === names[which])
    if (twin === undefined) continue
    throw new OnceboxError('OPTION_INVALID', `rolesSql: roles: ${twin} and ${which} have the same name`)
  }
  return names as Record<Role, string>
}

function createRole(name: string, quoted: string): string {
  return `do $$ begin
  if not exists (select from pg_catalog.pg_roles where rolname = ${literal(name)}) then create role ${quoted} nologin; end if;
end $$;`
}

/**
 * The schema first: a new owner of a table must have the right to create it there. Sequences of columns and indexes follow
 * their tables.
 */
function ownership(schema: string, own: string, owner: string): string {
  return `alter schema ${own} owner to ${owner};
grant all on schema ${own} to ${owner};
do $$
declare command text;
begin
  for command in
    select pg_catalog.format('alter %s ${own.replaceAll('%', '%%')}.%I owner to ${owner.replaceAll('%', '%%')}',
      case c.relkind when 'r' then 'table' when 'v' then 'view' else 'sequence' end, c.relname)
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = ${literal(schema)} and (c.relkind in ('r', 'v') or c.relkind = 'S' and not exists (
      select from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i') and d.refobjsubid > 0))
    union all
    select pg_catalog.format('alter function %s owner to ${owner.replaceAll('%', '%%')}', p.oid::pg_catalog.regprocedure)
    from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace where n.nspname = ${literal(schema)}
  loop
    execute command;
  end loop;
end $$;`
}

function quoteRole(which: Role, name: unknown): string {
  const problem = nameProblem(name, 63) ?? (/[$%']|^pg_|^public$/.test(name as string) ? 'is a name that roles cannot have here' : undefined) // prettier-ignore
  if (problem) throw new OnceboxError('OPTION_INVALID', `rolesSql: roles.${which} ${problem}`)
  return `"${(name as string).replaceAll('"', '""')}"`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

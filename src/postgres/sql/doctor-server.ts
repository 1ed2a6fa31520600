/**
 * Statements by which the doctor looks at the server: settings, sessions, tables as files, and the objects of the schema. They
 * read catalogs, which everybody may. What a role may not see is null there, and counted as hidden.
 */
import { statement, type Json } from '../statement.js'

export interface SettingsFacts {
  readonly fsync: string
  readonly fullPageWrites: string
  readonly synchronousCommit: string
  readonly autovacuum: string
  readonly trackCounts: string
  readonly isolation: string
  /** Limits in ms, 0 for none. */
  readonly idleInTransactionMs: number
  readonly transactionMs: number
  /** Of the database. */
  readonly encoding: string
  readonly database: string
  readonly readOnly: boolean
  readonly inRecovery: boolean
  /** The database's clock, and what the process that asks took for the time when it did. */
  readonly clockMs: number
  readonly role: string
  /** The role that the session began with, whose settings it has. */
  readonly login: string
  /** By setting: where it was made, as pg_settings says. */
  readonly sources: Readonly<Record<string, string>>
  /** It runs inside a process, as PGlite does: its settings say nothing of files, which that process writes. */
  readonly embedded: boolean
}

/** What the settings of this session are. In: nothing. Out: one row. */
export const LOOK_SETTINGS = statement<null, { facts: Json<SettingsFacts> }>(`
with input as (select $1::text),
setting as materialized (select s.name, s.setting, s.source from pg_settings s where s.name in ('fsync', 'full_page_writes', 'autovacuum',
  'track_counts', 'idle_in_transaction_session_timeout', 'transaction_timeout', 'default_transaction_read_only', 'synchronous_commit',
  'default_transaction_isolation'))
select jsonb_build_object('fsync', (select setting from setting where name = 'fsync'),
  'fullPageWrites', (select setting from setting where name = 'full_page_writes'),
  'synchronousCommit', current_setting('synchronous_commit'), 'autovacuum', (select setting from setting where name = 'autovacuum'),
  'trackCounts', (select setting from setting where name = 'track_counts'),
  'isolation', current_setting('default_transaction_isolation'),
  'idleInTransactionMs', coalesce((select setting::bigint from setting where name = 'idle_in_transaction_session_timeout'), 0),
  'transactionMs', coalesce((select setting::bigint from setting where name = 'transaction_timeout'), 0),
  'encoding', current_setting('server_encoding'), 'database', pg_catalog.current_database(),
  'readOnly', current_setting('transaction_read_only') = 'on', 'inRecovery', pg_is_in_recovery(),
  'clockMs', extract(epoch from clock_timestamp()) * 1000.0, 'role', current_user, 'login', session_user,
  'sources', (select jsonb_object_agg(name, source) from setting), 'embedded', strpos(pg_catalog.version(), 'emcc') > 0)::text facts from input`)

export interface ConnectionFacts {
  /** Sessions of clients on the whole server, and how many of them it takes of roles that are no superusers. */
  readonly used: number
  readonly most: number
  /** Those of this role and of this database, and their limits; null for none. */
  readonly ofRole: number
  readonly mostOfRole: number | null
  readonly ofDatabase: number
  readonly mostOfDatabase: number | null
  readonly role: string
  readonly database: string
}

/** How many sessions there are, and may be. In: nothing. Out: one row. */
export const LOOK_CONNECTIONS = statement<null, { facts: Json<ConnectionFacts> }>(`
with input as (select $1::text),
session as materialized (
  select a.usename, a.datname from pg_stat_activity a
  where a.datid is not null and coalesce(a.backend_type, 'client backend') = 'client backend'
)
select jsonb_build_object('used', (select count(*) from session),
  'most', current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0),
  'ofRole', (select count(*) from session where usename = session_user),
  'mostOfRole', (select r.rolconnlimit from pg_roles r where r.rolname = session_user and r.rolconnlimit >= 0 and not r.rolsuper),
  'ofDatabase', (select count(*) from session where datname = d.datname),
  'mostOfDatabase', case when d.datconnlimit >= 0 then d.datconnlimit end, 'role', session_user, 'database', d.datname)::text facts
from input, pg_database d where d.datname = pg_catalog.current_database()`)

export interface PinFacts {
  readonly kind: 'transaction' | 'prepared' | 'slot' | 'standby'
  /** The process of the server, the name of the transaction or of the slot, or the standby's. */
  readonly name: string
  /** What it is, for people: its role and application, or whether it is active. Never its query. */
  readonly who: string
  readonly ageMs: number | null
  /** How many transactions began since the oldest that it can still see; null if it holds back none. */
  readonly xids: number | null
  readonly active: boolean
  /** Bytes of the log that the server keeps for it; null if it keeps none. */
  readonly walBytes: number | null
}

/**
 * What keeps dead rows of this database from being removed, oldest first. Out: at most 20 rows of each kind. Sessions that this
 * role may not see are not among them: HIDDEN_SESSIONS counts these.
 */
export const LOOK_PINS = statement<null, { facts: Json<PinFacts> }>(`
with input as (select $1::text),
running as (
  select 'transaction' kind, a.pid::text "name", concat(a.usename, ', application "', a.application_name, '", ', a.state) who,
    extract(epoch from clock_timestamp() - a.xact_start) * 1000.0 age_ms,
    age(coalesce(a.backend_xmin, a.backend_xid)) xids, true active, null::numeric wal
  from pg_stat_activity a where a.datname = pg_catalog.current_database() and a.pid <> pg_backend_pid()
    and a.backend_type = 'client backend' and a.xact_start is not null order by a.xact_start limit 20
),
prepared as (
  select 'prepared', p.gid, p.owner::text, extract(epoch from clock_timestamp() - p.prepared) * 1000.0, age(p.transaction), true, null::numeric
  from pg_prepared_xacts p where p.database = pg_catalog.current_database() order by p.prepared limit 20
),
slots as (
  select 'slot', s.slot_name::text, concat(s.slot_type, ' slot, ', case when s.active then 'in use' else 'not in use' end), null::numeric,
    greatest(age(s.xmin), age(s.catalog_xmin)), s.active,
    case when not pg_is_in_recovery() and s.restart_lsn is not null then pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) end
  from pg_replication_slots s where s.database is null or s.database = pg_catalog.current_database() limit 20
),
standbys as (
  select 'standby', coalesce(r.application_name, r.pid::text), concat(r.usename, ', ', r.state), null::numeric, age(r.backend_xmin), true, null::numeric
  from pg_stat_replication r where r.backend_xmin is not null limit 20
)
select jsonb_build_object('kind', x.kind, 'name', x.name, 'who', x.who, 'ageMs', x.age_ms::bigint, 'xids', x.xids, 'active', x.active,
  'walBytes', x.wal)::text facts
from input, (select * from running union all select * from prepared union all select * from slots union all select * from standbys) x`)

/** Sessions of this database of which this role may see no more than that they are there. In: nothing. Out: one row. */
export const HIDDEN_SESSIONS = statement<null, { role: string; hidden: string }>(`
select current_user::text "role", count(*)::text hidden from pg_stat_activity a
where $1::text is not null and a.datname = pg_catalog.current_database() and a.query = '<insufficient privilege>'`)

export interface TableFacts {
  readonly table: string
  readonly live: number
  readonly dead: number
  readonly bytes: number
  /** How large it would be without room for what was deleted, by the planner's statistics; null if there are none. */
  readonly neededBytes: number | null
  /** False if it was turned off for this table. */
  readonly autovacuum: boolean
}

/** The tables of the schema, as files. In: nothing. */
export const LOOK_TABLES = statement<null, { facts: Json<TableFacts> }>(`
with input as (select $1::text),
own as materialized (
  select c.oid, c.relname, c.reltuples, c.reloptions from pg_class c
  where c.relkind = 'r'::"char" and c.relnamespace = (select v.relnamespace from pg_class v where v.oid = 'ob.schema_version'::regclass::oid)
)
select jsonb_build_object('table', t.relname, 'live', coalesce(s.n_live_tup, 0), 'dead', coalesce(s.n_dead_tup, 0),
  'bytes', pg_relation_size(t.oid), 'neededBytes', case when t.reltuples >= 0::float4 and width.n is not null
    then (t.reltuples::float8 * (width.n + 32)::float8 * 100::float8 / fill.factor::float8)::bigint end,
  'autovacuum', not coalesce('autovacuum_enabled=false' = any (t.reloptions) or 'autovacuum_enabled=off' = any (t.reloptions), false)
)::text facts
from input, own t left join pg_stat_all_tables s on s.relid = t.oid
cross join lateral (select coalesce((select split_part(o, '=', 2)::int from unnest(t.reloptions) o where o like 'fillfactor=%'), 100) factor) fill
cross join lateral (
  select sum(p.avg_width) n from pg_stats p
  where p.tablename = t.relname and p.schemaname = (select n.nspname from pg_class v join pg_namespace n on n.oid = v.relnamespace
    where v.oid = 'ob.schema_version'::regclass::oid)) width
order by t.relname`)

export interface ObjectRow {
  readonly kind: 'table' | 'view' | 'column' | 'index' | 'trigger' | 'constraint' | 'function' | 'sequence'
  readonly name: string
  /** What must be as it was created. */
  readonly detail: string
  /** Of an index that is not valid, and of a trigger or a constraint that is switched off. */
  readonly broken: 'true' | 'false'
}

/**
 * The objects of the schema, as far as they do not differ from one version of PostgreSQL to another. In: the name of the schema as
 * statements have it, quoted and with its dot, which functions have in their bodies.
 */
export const LOOK_OBJECTS = statement<{ own: string }, ObjectRow>(`
with input as materialized (select given->>'own' own from (select $1::text::jsonb given) x),
space as materialized (
  select n.oid, format('%I.', n.nspname) prefix from pg_class v join pg_namespace n on n.oid = v.relnamespace
  where v.oid = 'ob.schema_version'::regclass::oid
),
own as materialized (select c.oid, c.relname::text "name", c.relkind, c.relpersistence from pg_class c, space where c.relnamespace = space.oid)
select case c.relkind when 'r'::"char" then 'table' when 'v'::"char" then 'view' else 'sequence' end kind, c.name,
  case when c.relpersistence = 'u'::"char" and c.relkind <> 'S'::"char" then 'unlogged' else '' end detail, 'false' broken
from own c where c.relkind in ('r'::"char", 'v'::"char", 'p'::"char", 'm'::"char", 'f'::"char")
  -- Those of columns come and go with them.
  or c.relkind = 'S'::"char" and not exists (select 1 from pg_depend d
    where d.objid = c.oid and d.deptype in ('a'::"char", 'i'::"char") and d.refobjsubid > 0)
union all
select 'column', c.name || '.' || a.attname::text, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
  case when a.attcollation = '"C"'::regcollation::oid then 'collate C' end, case when a.attnotnull then 'not null' end,
  case when a.attidentity <> ''::"char" then 'identity' when a.atthasdef then 'default' end), 'false'
from own c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0::smallint and not a.attisdropped where c.relkind in ('r'::"char", 'v'::"char")
union all
select 'index', c.name, replace(pg_get_indexdef(c.oid), (select prefix from space), 'ob' || '.'), (not i.indisvalid or not i.indisready)::text
from own c join pg_index i on i.indexrelid = c.oid
union all
select 'trigger', c.name || '.' || t.tgname::text, '', (t.tgenabled = 'D'::"char")::text
from own c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal
union all
select 'constraint', c.name || '.' || k.conname::text, '', (not k.convalidated)::text
from own c join pg_constraint k on k.conrelid = c.oid where k.contype in ('f'::"char", 'c'::"char")
union all
select 'function', p.proname::text, concat_ws(' ', md5(replace(p.prosrc, (select own from input), 'ob' || '.')),
  case when p.prosecdef then 'security definer' end), 'false'
from pg_proc p, space where p.pronamespace = space.oid
order by 1, 2, 3`)

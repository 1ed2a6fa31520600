/** Statements with which `start()` looks at its server. */
import { statement } from '../statement.js'

/**
 * Where names are looked for, as it is set: what it names may not exist yet. In: nothing. It is asked where the path may be a
 * hostile one, so nothing in it is looked for.
 */
export const SEARCH_PATH = statement<null, { path: string }>(`
select pg_catalog.current_setting('search_path'::pg_catalog.text) path where $1::pg_catalog.text is not null`)

/**
 * Which of these rights the session's role lacks: those on `tables`, by name, and to `functions`; and sight of all rows of these
 * tables. Out, in one row: the `role`; what is `missing`, as a list for people; whether some of that can be `granted`, for sight
 * cannot; and what lets it see, as statements, `unveil`. Null if nothing is. Sequences that others have added to the schema, and
 * their functions, are not asked for.
 */
export const MISSING_RIGHTS = statement<RightsInput, RightsRow>(`
with input as (select $1::text::jsonb given),
missing as (
  select 1 place, asked.name, right_to.it || ' on ' || asked.name what
  from input, jsonb_each(given->'tables') asked(name, rights), jsonb_array_elements_text(asked.rights) right_to(it)
  where not has_table_privilege('ob.' || asked.name, right_to.it)
  union all
  select 2, s.name, 'USAGE on sequence ' || s.name
  from (values ('ob.seq'), ('ob.sink_version'), (pg_get_serial_sequence('ob.outbox', 'n')), (pg_get_serial_sequence('ob.quarantine', 'n')),
    (pg_get_serial_sequence('ob.audit', 'n')), (pg_get_serial_sequence('ob.attempt', 'n'))) s(name)
  where not has_sequence_privilege(s.name, 'USAGE')
  union all
  select 3, f.proname::text, 'EXECUTE on function ' || f.proname::text
  from input, jsonb_array_elements_text(given->'functions') asked(name) join pg_proc f on f.proname::text = asked.name
    and f.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'ob.schema_version'::regclass::oid)
  where not has_function_privilege(f.oid, 'EXECUTE')
  union all
  select 4, asked.name, 'sight of all rows of ' || asked.name || ', which has row-level security (alter table '
    || ('ob.' || asked.name)::regclass::text || ' disable row level security, or alter role ' || quote_ident(current_user::text) || ' bypassrls)'
  from input, jsonb_object_keys(given->'tables') asked(name) where row_security_active('ob.' || asked.name)
)
select current_user::text "role", (select string_agg(m.what, ', ' order by m.place, m.name, m.what) from missing m) missing,
  (select string_agg('alter table ' || ('ob.' || m.name)::regclass::text || ' disable row level security;', ' ' order by m.name)
   from missing m where m.place = 4) unveil,
  (select bool_or(m.place < 4)::text from missing m) granted`)

export interface RightsRow {
  readonly role: string
  readonly missing: string | null
  readonly unveil: string | null
  readonly granted: 'true' | 'false' | null
}

interface RightsInput {
  readonly tables: Readonly<Record<string, readonly string[]>>
  readonly functions: readonly string[]
}

/** The encoding of the database. In: nothing. */
export const ENCODING = statement<null, { encoding: string }>(
  `select current_setting('server_encoding') encoding where $1::text is not null`,
)

/** What the server cannot do, in words; null if it does all that is needed. In: nothing. */
export const MISSING_ABILITY = statement<null, { missing: string | null }>(
  `select ob.missing_ability() missing where $1::text is not null`,
)

/**
 * Every column that holds numbers of a sequence, with the greatest in it. `seq` numbers the journal too, which has no index by
 * number: what is handled of it is in `handled`, and the rest has work, whose number was drawn after that of its message. What a
 * removed sink is remembered by is the number of an event that may be gone.
 */
const numbers = (work: string, attempt: string): string => `
numbers(sequence, numbered, col, newest) as materialized (values
  ('ob.seq'::regclass, 'ob.work', 'seq', (select max(w.seq) from ${work} w)),
  ('ob.seq'::regclass, 'ob.handled', 'n', (select max(n) from ob.handled)),
  (pg_get_serial_sequence('ob.outbox', 'n')::regclass, 'ob.outbox', 'n', (select max(n) from ob.outbox)),
  (pg_get_serial_sequence('ob.outbox', 'n')::regclass, 'ob.removed_sink', 'n', (select max(n) from ob.removed_sink)),
  (pg_get_serial_sequence('ob.quarantine', 'n')::regclass, 'ob.quarantine', 'n', (select max(n) from ob.quarantine)),
  (pg_get_serial_sequence('ob.audit', 'n')::regclass, 'ob.audit', 'n', (select max(n) from ob.audit)),
  (pg_get_serial_sequence('ob.attempt', 'n')::regclass, 'ob.attempt', 'n', (select max(a.n) from ${attempt} a))
),
behind as materialized (
  select s.sequence, s.newest from (select sequence, max(newest) newest from numbers group by sequence) s
  where case when has_sequence_privilege(s.sequence, 'USAGE, SELECT')
    then s.newest > coalesce(pg_sequence_last_value(s.sequence), 0) else false end
)`

/**
 * Sequences that are behind the numbers in their tables. In: nothing. Out: for each, one row for every column that has its numbers.
 * Of tables without an index by number a sample is looked at: a sequence that was not copied is behind nearly all of it.
 * What this role may not look at is left out. Indexes: the primary keys.
 */
export const SEQUENCES_BEHIND = statement<null, BehindRow>(`
with${numbers('(select seq from ob.work limit 10000)', '(select n from ob.attempt limit 10000)')}
select n.sequence::text, n.numbered, n.col from behind join numbers n on n.sequence::oid = behind.sequence::oid
where $1::text is not null`)

export interface BehindRow {
  readonly sequence: string
  readonly numbered: string
  readonly col: string
}

/**
 * One repair at a time: who comes second must see what the first has set. In: nothing. A row of ours, which a stranger cannot
 * lock as they can an advisory lock. Registering sinks takes it too, for a moment.
 */
export const LOCK_SEQUENCES = statement<null>(`
with limited as materialized (select set_config('lock_timeout', '15000', true) it where $1::text is not null)
select 1 from limited, ob.sink_set s for update of s`)

/** Sets every sequence that is behind to the last of its numbers, never back. In: nothing. */
export const REPAIR_SEQUENCES = statement<null>(`
with${numbers('ob.work', 'ob.attempt')}
select setval(behind.sequence, behind.newest) from behind where $1::text is not null`)

/** What surrounds the migrations of a schema that is in use: the locks that they need, and whose their tables are. */
import { MIGRATIONS } from './migrations.generated.js'

/** Tables that every handler holds, in the order in which a claim, and then its handler, takes them. */
const TAKEN = ['work', 'message', 'outbox'] as const

/**
 * Takes at once, in the order of handlers, what the migrations behind `from` change one after the other: whoever holds one of these
 * tables and waits for the next then never waits for a migration that waits for it. Undefined if they change none.
 */
export function lockTaken(from: number): string | undefined {
  const old = sqlOf(MIGRATIONS.filter(({ version }) => version <= from))
  const pending = sqlOf(MIGRATIONS.filter(({ version }) => version > from))
  const changed = TAKEN.filter(
    (table) =>
      old.includes(`create table ob.${table} (`) && new RegExp(`\\b(?:alter table|on) ob\\.${table}\\b`).test(pending),
  )
  if (changed.length === 0) return undefined
  return `lock table ${changed.map((table) => `ob.${table}`).join(', ')} in access exclusive mode`
}

/**
 * Gives what the migrations behind `from` have made to the owner of the tables of before, where somebody else has run them: a
 * superuser, or a member of that role. If this role may not give it away, it lets the owner use it.
 */
export function handOver(from: number): string {
  const pending = sqlOf(MIGRATIONS.filter(({ version }) => version > from))
  const names = [...pending.matchAll(/^create (?:or replace )?(?:table|sequence|view|function) ob\.(\w+)/gm)]
  const made = `any ('{${[...new Set(names.map(([, name]) => name))].join(',')}}'::pg_catalog.name[])`
  return `do $$
declare
  object record;
begin
  for object in
    with old as (select c.relnamespace, c.relowner from pg_class c where c.oid = 'ob.message'::regclass)
    select 'table' kind, c.oid::regclass::text name, old.relowner::regrole owner from old join pg_class c using (relnamespace)
    where c.relname = ${made} and c.relkind in ('r', 'v', 'S') and c.relowner <> old.relowner
    union all
    select 'function', p.oid::regprocedure::text, old.relowner::regrole from old join pg_proc p on p.pronamespace = old.relnamespace
    where p.proname = ${made} and p.proowner <> old.relowner
  loop
    begin
      execute format('alter %s %s owner to %s', object.kind, object.name, object.owner);
    exception when insufficient_privilege then
      execute format('grant all on %s %s to %s', object.kind, object.name, object.owner);
    end;
  end loop;
end $$`
}

function sqlOf(migrations: typeof MIGRATIONS): string {
  return migrations.map(({ sql }) => sql).join('\n')
}

-- The version of the set of sinks, as a number that every snapshot sees as it is now. A sender whose snapshot has another one in
-- `ob.sink_set` does not know the sinks there are: its events wait for a relay to judge who wants them. Drawn by whoever changes
-- the sinks, under the lock of the set. Nothing is locked that senders hold.
create sequence ob.sink_version;
select nextval('ob.sink_version') from generate_series(0, (select version from ob.sink_set));
update ob.sink_set set version = pg_sequence_last_value('ob.sink_version');

-- As before, but for the version.
create or replace function ob.register_sinks(given jsonb) returns jsonb language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
declare
  differ jsonb;
  changed boolean;
  known bigint;
  next bigint;
begin
  -- Some sessions need settings first, and then the statement is not the whole transaction.
  perform set_config('lock_timeout', '15000', true), set_config('idle_in_transaction_session_timeout', '5000', true);
  select version into known from ob.sink_set for update;
  delete from ob.removed_sink r where r.sink in (select x->>'n' from jsonb_array_elements(given->'s') x);
  with p as materialized (select given j),
  own as materialized (
    select x->>'n' sink, (x->>'k')::bigint keep_ms, case when jsonb_typeof(x->'t') = 'array'
      then array(select t collate "C" from jsonb_array_elements_text(x->'t') t order by 1) end types
    from p, jsonb_array_elements(j->'s') x
  ),
  others as materialized (
    select d.sink, d.host, d.types, d.keep_ms from p, ob.sink_declaration d
    where d.process <> (j->>'process')::uuid and d.sink in (select sink from own)
      and d.seen_at >= ob.now() - (j->>'ms')::float8 * interval '1 ms'
  ),
  forgotten as (
    delete from ob.sink_declaration d using p
    where d.process <> (j->>'process')::uuid and d.seen_at < ob.now() - (j->>'ms')::float8 * interval '1 ms'
  ),
  declared as (
    insert into ob.sink_declaration as d (sink, process, host, types, keep_ms)
    select sink, (j->>'process')::uuid, j->>'host', types, keep_ms from own, p
    on conflict (sink, process) do update set
      types = excluded.types, keep_ms = excluded.keep_ms, host = excluded.host, seen_at = excluded.seen_at
  ),
  said as (select sink, types, keep_ms from own union all select sink, types, keep_ms from others),
  wanted as materialized (
    select sink, max(keep_ms) keep_ms, case when not bool_or(types is null) then
      array(select distinct unnest(x.types) from said x where x.sink = said.sink order by 1) end types
    from said group by sink
  ),
  before as materialized (select name, types from ob.sink),
  more as materialized (
    select w.sink from wanted w left join before b on b.name = w.sink
    where b.name is null or (b.types is not null and (w.types is null or not w.types <@ b.types))
  ),
  written as (
    insert into ob.sink as k (name, types, keep_ms) select sink, types, keep_ms from wanted order by sink
    on conflict (name) do update set types = excluded.types, keep_ms = excluded.keep_ms
      where (k.types, k.keep_ms) is distinct from (excluded.types, excluded.keep_ms)
    returning 1
  ),
  shards as (
    insert into ob.shard (sink, shard) select sink, g from own, generate_series(0, 31) g order by sink, g
    on conflict do nothing
  ),
  again as (
    insert into ob.catch_up as c (sink, holds) select sink, sink in (select sink from more) from own, p
    where sink in (select sink from more) or (j->>'again')::boolean
    on conflict (sink) do update set holds = true, due_at = '-infinity', n = 0 where excluded.holds
  )
  select coalesce((select jsonb_agg(jsonb_build_object('sink', o.sink, 'host', o.host, 'types', to_jsonb(o.types)))
    from others o join own using (sink) where o.types is distinct from own.types), '[]'),
    exists (select 1 from written) into differ, changed;
  -- They differ where a change was rolled back, or made by an older version.
  if changed or known is distinct from pg_sequence_last_value('ob.sink_version') then
    loop
      next := nextval('ob.sink_version');
      exit when next > known;
    end loop;
    update ob.sink_set set version = next;
  end if;
  return differ;
end $$;

-- Whoever may send may compare, and whoever may change the set of sinks may count: roles need nothing run again for that. Where
-- nothing was granted yet there is no list of rights, and the owner has them all.
do $$
declare
  role record;
begin
  for role in
    select distinct case when right_to.grantee = 0 then 'public' else right_to.grantee::regrole::text end name,
      right_to.privilege_type from (
      select (aclexplode(coalesce(c.relacl, acldefault('r', c.relowner)))).* from pg_class c where c.oid in ('ob.outbox'::regclass, 'ob.sink_set'::regclass)
      union all
      select (aclexplode(a.attacl)).* from pg_attribute a where a.attrelid = 'ob.outbox'::regclass) right_to
    where right_to.privilege_type in ('INSERT', 'UPDATE')
  loop
    execute format('grant select (version) on %s to %s', 'ob.sink_set'::regclass, role.name);
    execute format('grant select on sequence %s to %s', 'ob.sink_version'::regclass, role.name);
    if role.privilege_type = 'UPDATE' then
      execute format('grant usage on sequence %s to %s', 'ob.sink_version'::regclass, role.name);
    end if;
  end loop;
end $$;

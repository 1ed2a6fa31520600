-- Sinks that were removed, and the last event that was sent by then: its transaction may have been open, and commit later.
create table ob.removed_sink (
  sink text collate "C" primary key,
  n bigint not null
);

-- Sinks are registered by one statement: a process that stands still between two would keep the set of sinks locked, and
-- with it all relays. A sink wants what any process says that was seen lately; what was put aside is looked at again, and
-- a sink that wants more than before publishes nothing until it is through. In and out: see REGISTER_SINKS.
-- A volatile function: what follows the lock sees what others have written before it.
create function ob.register_sinks(given jsonb) returns jsonb language plpgsql volatile as $$
declare
  differ jsonb;
begin
  -- Some sessions need settings first, and then the statement is not the whole transaction.
  perform set_config('lock_timeout', '15000', true), set_config('idle_in_transaction_session_timeout', '5000', true);
  perform 1 from ob.sink_set for update;
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
  counted as (update ob.sink_set set version = version + 1 where exists (select 1 from written)),
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
    from others o join own using (sink) where o.types is distinct from own.types), '[]') into differ;
  return differ;
end $$;

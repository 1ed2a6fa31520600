/** The statement of a link between two boxes of one database. `to_box.` stands for the schema of the receiving one. */
import { COUNTED, HELD_BACK } from './outbox.js'

/**
 * Moves the next events of leased shards straight into the inbox of another box: READ_SHARDS, RECEIVE and COMPLETE in
 * one, so that an event is in one place or in the other. In: `{ sink, k token, depth, n limit, bytes, wait for
 * a lock, c local consumers of the receiving box }`. Out, as one JSON row: `moved`, how many; `shared` as in COMPLETE; and `rest`, the
 * events that are not new to every consumer, too old, wanted by nobody, or by a consumer with a business key: they go the
 * long way, which can judge them. Raises 40001 if retention has forgotten messages of this age meanwhile.
 *
 * The shard rows are locked and our token is on them, so nobody else moves events of their keys meanwhile, and within a
 * lane, locked before it is drawn, the sequence follows the order of sending. Shards without a rest are given back. Rows are matched by grouping:
 * the planner takes these lists for short, and would join them row by row.
 */
export const MOVE = `
with p as materialized (
  select j, set_config('lock_timeout', j->>'wait', true) from (select $1::text::jsonb j) x
),${HELD_BACK},
h as materialized (
  select h.shard from p, ob.shard h where h.sink = j->>'sink' and h.token = (j->>'k')::uuid order by h.shard for update of h
),
b as materialized (
  select d.n, d.shard, d.attempts from p, h
  cross join lateral (
    select d.n, d.shard,${COUNTED} attempts from ob.delivery d
    where d.sink = j->>'sink' and d.shard >= h.shard and d.shard <= h.shard and d.parked is null and not d.waiting
      and (d.key is null or d.key not in (select key from held))
    order by d.shard, d.n limit (select (j->>'depth')::int from p)) d
  where not exists (select 1 from behind where holds)
  order by d.n limit (select (j->>'n')::int from p)
),
e as materialized (
  select o.*, coalesce(substring(envelope from '^{"time":"([^"]+)"')::timestamptz, created_at) at from (
    select b.shard, b.attempts, o.*, sum(octet_length(o.body)) over (order by b.n) - octet_length(o.body) before
    from b cross join lateral (select * from ob.outbox o where o.n = b.n limit 1) o) o
  where before < (select (j->>'bytes')::bigint from p)
),
local as materialized (
  select x->>'n' name, (x->>'o')::boolean ordered, (x->>'r')::float8 retain_ms, x->>'u' untimed, x->'t' types
  from p, jsonb_array_elements(j->'c') x
),
c as materialized (
  select s.consumer, s.type, coalesce(l.ordered, false) or coalesce(o.ordered, false) ordered,
         coalesce(l.retain_ms, o.retain_ms) retain_ms, coalesce(l.untimed, o.untimed) untimed, g.sent_before,
         coalesce(o.identity, false) identity
  from (select name consumer, jsonb_array_elements_text(types) type from local
        union select consumer, type from to_box.subscription) s
  left join local l on l.name = s.consumer
  left join to_box.consumer o on o.name = s.consumer
  left join to_box.forgotten g on g.consumer = s.consumer
),
f as materialized (
  select distinct on (e.n, c.consumer) e.*, c.consumer, c.ordered,
         not c.identity and to_box.is_fresh(e.at, c.retain_ms, c.untimed, c.sent_before) fresh
  from e join c on c.type in (e.type, '*')
),
ins as (
  insert into to_box.message as t (consumer, source, id, type, key, body, hash, envelope)
  select consumer, source, id, type, key, body, hash,
         case when envelope like '{"time":%' then envelope
              else '{"time":"' || to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '",'
                || substr(envelope, 2) end
  from f where fresh
  order by consumer, source, id
  on conflict do nothing
  returning t.consumer, t.source, t.id
),
still_fresh as materialized (
  select to_box.refuse_forgotten(consumer, min(at)) from f where fresh and (select count(*) from ins) > 0 group by consumer
),
nw as materialized (
  select max(n) n, consumer, source, id, max(lane) lane
  from (select consumer, source, id, n, case when ordered then key end lane, 0 is_new from f
        union all select consumer, source, id, null, null, 1 from ins) x
  group by consumer, source, id having sum(is_new) = 1
),
lanes as (
  insert into to_box.lane as l (consumer, key, due_at)
  select consumer, lane, to_box.now() from nw where lane is not null group by consumer, lane order by consumer, lane
  on conflict (consumer, key) do update set
    dirty = true,
    due_at = case when l.due_at = 'infinity' and l.token is null and not l.blocked then excluded.due_at
                  else l.due_at end
  where not l.dirty or l.due_at = 'infinity'
  returning consumer, key
),
w as (
  insert into to_box.work (consumer, source, id, seq, lane, due_at)
  select consumer, source, id, nextval('to_box.seq'), lane, to_box.now()
  from (select * from nw where (select count(*) from lanes) >= 0 order by n) o
  returning 1
),
moved as materialized (
  select n from (select n, 1 due, 0 done from f union all select n, 0, 1 from nw) x group by n having sum(due) = sum(done)
),
rest as materialized (select e.* from e where e.n not in (select n from moved)),
d as (
  delete from ob.delivery d where d.ctid = any (array(
    select d.ctid from p, moved cross join lateral (
      select d.ctid from ob.delivery d where d.n = moved.n and d.sink = j->>'sink' limit 1) d))
  returning d.n
),
o as materialized (
  select d.n, exists (select 1 from p, ob.delivery x where x.n = d.n and x.sink <> j->>'sink') shared from d
),
keep as materialized (select coalesce(max(keep_ms), 0) > 0 it from ob.sink),
gone as (delete from ob.outbox e using o, keep where e.n = o.n and not o.shared and not keep.it),
kept as (update ob.outbox e set published_at = ob.now() from o, keep where e.n = o.n and not o.shared and keep.it),
r as (
  update ob.shard x set token = null, due_at = ob.now()
  from p, h where x.sink = j->>'sink' and x.shard = h.shard and x.shard not in (select shard from rest)
)
select jsonb_build_object(
  'moved', (select count(*) from d),
  'stored', (select count(*) from w),
  'consumers', (select count(*) from still_fresh),
  'shared', coalesce((select jsonb_agg(n::text) from o where shared), '[]'),
  'rest', coalesce((select jsonb_agg(jsonb_build_object('n', n::text, 'shard', shard, 'attempts', attempts,
      'source', source, 'id', id, 'type', type, 'key', key, 'body', body, 'envelope', envelope,
      'created', (extract(epoch from created_at) * 1000.0)::bigint::text) order by n) from rest), '[]')
)::text answer`

/** Statements of the outbox: send, and what the relay runs. For a link inside one database see link.ts. */

/**
 * Writes events in the caller's transaction, with a delivery for each sink that wants them. In: `s` the source, `to` the
 * local sinks `{ n name, t types or null }`, `m` events `{ i id, t type, k key, g shard, b body, h hash, e envelope,
 * at time }`. The same id twice is a no-op: no second delivery either.
 *
 * Events of one key get their number here, so they are published in the order of their statements as long as their
 * transactions exclude each other. An event without a key goes to any shard.
 */
export const SEND = `
with p as materialized (select $1::text::jsonb j),
m as materialized (
  select ord, x->>'i' id, x->>'t' type, x->>'k' key, (x->>'g')::int shard, x->>'b' body, x->>'h' hash, x->>'e' envelope,
         (x->>'at')::timestamptz at
  from p, jsonb_array_elements(j->'m') with ordinality a(x, ord)
),
e as (
  insert into ob.outbox as o (source, id, type, key, body, hash, envelope)
  select (select j->>'s' from p), id, type, key, body, decode(hash, 'hex'), envelope from m order by ord
  on conflict (source, id) do nothing
  returning o.n, o.id, o.type
),
s as materialized (
  select name, types from ob.sink
  union all
  select x->>'n', case when jsonb_typeof(x->'t') = 'array' then array(select jsonb_array_elements_text(x->'t')) end
  from p, jsonb_array_elements(j->'to') x
)
insert into ob.delivery (n, sink, shard, key, due_at, waiting)
select e.n, coalesce(w.name, ''), coalesce(m.shard, (e.n % 32)::int), m.key, coalesce(m.at, ob.now()),
       w.name is not null and coalesce(m.at > ob.now(), false)
from e join m using (id)
left join lateral (select distinct s.name from s where s.types is null or e.type = any (s.types)) w on true
order by e.n`

/** Everything that was sent and is still there, in order. For tests. */
export const SENT = `
select source, id, type, key, body, envelope, (extract(epoch from created_at) * 1000)::bigint::text received
from ob.outbox where $1::text is not null order by n`

/**
 * Registers the sinks of a box, all in one statement: events that waited for a sink are then given to all of them.
 * In: a list of `{ n name, t types or null, k keepMs }`. Out: how many are new or want other types than before.
 */
export const REGISTER_SINKS = `
with s as materialized (
  select x->>'n' name, (x->>'k')::bigint keep_ms,
         case when jsonb_typeof(x->'t') = 'array' then array(select jsonb_array_elements_text(x->'t')) end types
  from jsonb_array_elements($1::text::jsonb) x
),
u as (
  insert into ob.sink as k (name, types, keep_ms) select name, types, keep_ms from s order by name
  on conflict (name) do update set types = excluded.types, keep_ms = excluded.keep_ms
    where (k.types, k.keep_ms) is distinct from (excluded.types, excluded.keep_ms)
  returning 1
),
h as (
  insert into ob.shard (sink, shard) select s.name, g from s, generate_series(0, 31) g order by s.name, g
  on conflict do nothing
)
select count(*)::text changed from u`

/**
 * Looks again at events that no sink wanted until now. It waits for rows that another relay is just putting aside: that
 * relay may not have known the new sinks.
 */
export const RECONSIDER = `
update ob.delivery d set waiting = false
from ob.outbox o
where d.sink = '' and d.waiting and d.parked is null and o.n = d.n and $1::text is not null
  and exists (select 1 from ob.sink s where s.types is null or o.type = any (s.types))`

/**
 * Gives events that were sent before there was a sink to the sinks that want them; what nobody wants is put aside.
 * In: how many to look at. Out: how many it looked at.
 */
export const ASSIGN = `
with u as materialized (
  select n from ob.delivery where sink = '' and parked is null and not waiting
  order by n limit (select ($1::text::jsonb->>0)::int) for update skip locked
),
w as materialized (
  select u.n, s.name from u join ob.outbox o using (n) join ob.sink s on s.types is null or o.type = any (s.types)
),
i as (
  insert into ob.delivery (n, sink, shard, key, due_at, waiting)
  select d.n, w.name, d.shard, d.key, d.due_at, d.due_at > ob.now()
  from w join ob.delivery d on d.n = w.n and d.sink = '' order by d.n
  on conflict do nothing
),
d as (delete from ob.delivery d where d.sink = '' and d.n in (select n from w)),
a as (update ob.delivery d set waiting = true where d.sink = '' and d.n in (select n from u except select n from w))
select count(*)::text looked from u`

/**
 * Keys that have to wait: one of their events failed and is not due again, or was sent before there was a sink and still
 * needs one. A list to be hashed, next to nothing as a rule: as a join or a correlated subquery the planner would expect
 * few events to be left, and read the whole backlog to sort it.
 */
export const HELD_BACK = `
held as materialized (
  select f.key from ob.delivery f
  where f.sink = (select j->>'sink' from p) and f.parked is null and f.waiting and f.attempts > 0 and f.key is not null
  union all
  select u.key from ob.delivery u where u.sink = '' and u.parked is null and not u.waiting and u.key is not null
)`

/**
 * Leases shards that have something to publish, those first that were served longest ago. In: `{ sink, k token, lease ms,
 * n shards }`. Out: the `shards`; whether waiting events fell due (`promoted`) or need a sink (`unassigned`), so that it
 * pays to ask again; and when the next one falls due, in ms. Where nothing is due, nothing is written.
 */
export const CLAIM_SHARDS = `
with p as materialized (select $1::text::jsonb j),${HELD_BACK},
w as (
  update ob.delivery d set waiting = false
  where d.ctid = any (array(
    select ctid from ob.delivery
    where sink = (select j->>'sink' from p) and parked is null and waiting and due_at <= ob.now()
    order by due_at limit 1000 for update skip locked))
  returning 1
),
c as (
  update ob.shard h set token = (select (j->>'k')::uuid from p),
    due_at = ob.now() + (select (j->>'lease')::float8 * interval '1 ms' from p)
  where h.ctid = any (array(
    select h.ctid from ob.shard h cross join lateral (
      select 1 from ob.delivery d
      where d.sink = h.sink and d.shard = h.shard and d.parked is null and not d.waiting
        and (d.key is null or d.key not in (select key from held))
      limit 1) d
    where h.sink = (select j->>'sink' from p) and h.due_at <= ob.now()
    order by h.due_at, h.shard limit (select (j->>'n')::int from p) for update of h skip locked))
  returning h.shard
)
select coalesce((select jsonb_agg(shard) from c), '[]')::text shards,
  ((select count(*) from w) > 0)::text promoted,
  exists (select 1 from ob.delivery where sink = '' and parked is null and not waiting)::text unassigned,
  (select greatest(0, extract(epoch from d.due_at - ob.now()) * 1000)::bigint::text from ob.delivery d
    where d.sink = (select j->>'sink' from p) and d.parked is null and d.waiting and d.due_at > ob.now()
    order by d.due_at limit 1) next`

/**
 * Reads the next events of leased shards, oldest first. In: `{ sink, s shards, depth per shard, n limit, bytes }`.
 * A statement of its own: the snapshot of the lease could still show what the previous holder published.
 */
export const READ_SHARDS = `
with p as materialized (select $1::text::jsonb j),${HELD_BACK},
b as materialized (
  select d.n, d.shard, d.attempts from p, unnest(array(select jsonb_array_elements_text(j->'s') from p)) s(shard)
  cross join lateral (
    select d.n, d.shard, d.attempts from ob.delivery d
    where d.sink = j->>'sink' and d.shard = s.shard::int and d.parked is null and not d.waiting
      and (d.key is null or d.key not in (select key from held))
    order by d.n limit (select (j->>'depth')::int from p)) d
  order by d.n limit (select (j->>'n')::int from p)
),
e as (
  select b.shard, b.attempts, o.*, sum(octet_length(o.body)) over (order by b.n) - octet_length(o.body) before
  from b cross join lateral (select * from ob.outbox o where o.n = b.n limit 1) o
)
select n::text, shard::text, attempts::text, source, id, type, key, body, envelope,
       (extract(epoch from created_at) * 1000)::bigint::text created
from e where before < (select (j->>'bytes')::bigint from p) order by e.n`

/**
 * Records what became of a batch and gives its shards back. In: `{ sink, k token, done: [n, …], fail: [{ n, ms delay,
 * p parked, e error }] }`. Only in shards that still carry our token: the others were taken over, and their events are
 * published again. Out: how many were completed, and `shared`, the events that another sink may just be completing too.
 */
export const COMPLETE = `
with p as materialized (select $1::text::jsonb j),
h as materialized (
  select h.shard from p, ob.shard h where h.sink = j->>'sink' and h.token = (j->>'k')::uuid order by h.shard for update of h
),
d as (
  delete from ob.delivery d where d.ctid = any (array(
    select d.ctid from p, jsonb_array_elements_text(j->'done') x
    cross join lateral (select d.ctid, d.shard from ob.delivery d where d.n = x::bigint and d.sink = j->>'sink' limit 1) d
    where d.shard in (select shard from h)))
  returning d.n
),
x as materialized (
  select d.ctid tid, d.n, x->>'e' error, x->>'p' parked, coalesce((x->>'ms')::float8, 0) ms
  from p, jsonb_array_elements(j->'fail') x cross join lateral (
    select d.ctid, d.n, d.shard from ob.delivery d where d.n = (x->>'n')::bigint and d.sink = j->>'sink' limit 1) d
  where d.shard in (select shard from h)
),
f as (
  update ob.delivery d set attempts = d.attempts + 1, (error, parked, waiting, due_at) = (
    select x.error, x.parked, x.parked is null, ob.now() + x.ms * interval '1 ms' from x where x.n = d.n)
  where d.ctid = any (array(select tid from x))
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
  from p, h where x.sink = j->>'sink' and x.shard = h.shard returning 1
)
select ((select count(*) from d) + (select count(*) from f))::text recorded,
  coalesce((select jsonb_agg(n::text) from o where shared), '[]')::text shared`

/**
 * Finishes events of several sinks, after the completion of the last of them has committed: two that complete at the
 * same time see each other's delivery, and neither of them finishes the event.
 */
export const FINISH_SHARED = `
with o as materialized (
  select o.n from ob.outbox o
  where o.n in (select x::bigint from jsonb_array_elements_text($1::text::jsonb) x)
    and o.published_at is null and not exists (select 1 from ob.delivery d where d.n = o.n)
  order by o.n for update skip locked
),
keep as materialized (select coalesce(max(keep_ms), 0) > 0 it from ob.sink),
gone as (delete from ob.outbox e using o, keep where e.n = o.n and not keep.it)
update ob.outbox e set published_at = ob.now() from o, keep where e.n = o.n and keep.it`

/**
 * Finishes events that all their sinks have published, but whose last relay died before FINISH_SHARED: an event without
 * a delivery. Only several sinks can leave one. In: how many at most. Out: how many there were.
 */
export const FINISH_LEFT = `
with o as materialized (
  select o.n from ob.outbox o
  where o.published_at is null and not exists (select 1 from ob.delivery d where d.n = o.n)
    and (select count(*) from ob.sink) > 1
  order by o.n limit (select ($1::text::jsonb->>0)::int) for update skip locked
),
keep as materialized (select coalesce(max(keep_ms), 0) > 0 it from ob.sink),
gone as (delete from ob.outbox e using o, keep where e.n = o.n and not keep.it),
kept as (update ob.outbox e set published_at = ob.now() from o, keep where e.n = o.n and keep.it)
select count(*)::text finished from o`

/** Heartbeat. In: `{ sink, k token, lease ms }`. Shards that a completion holds are skipped. Out: how many carry our token. */
export const EXTEND_SHARDS = `
with p as materialized (select $1::text::jsonb j),
u as (
  update ob.shard h set due_at = ob.now() + (select (j->>'lease')::float8 * interval '1 ms' from p)
  where h.ctid = any (array(
    select h.ctid from p, ob.shard h where h.sink = j->>'sink' and h.token = (j->>'k')::uuid for update of h skip locked))
  returning 1
)
select (select count(*) from p, ob.shard h where h.sink = j->>'sink' and h.token = (j->>'k')::uuid)::text held,
  (select count(*) from u)::text extended`

/** Gives shards back. In: `{ sink, k token }`. */
export const RELEASE_SHARDS = `
with p as materialized (select $1::text::jsonb j)
update ob.shard h set token = null, due_at = ob.now() from p where h.sink = j->>'sink' and h.token = (j->>'k')::uuid`

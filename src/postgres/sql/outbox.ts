/** Statements of the outbox: send, and what the relay runs. For a link inside one database see link.ts. */

/**
 * Writes events in the caller's transaction, with a delivery for each sink that wants them. In: `s` the source, `to` the
 * local sinks `{ n name, t types or null }`, which count until they are registered, `m` events `{ i id, t type, k key, g shard, b body, h hash, e envelope,
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
  where not exists (select 1 from ob.sink k where k.name = x->>'n')
)
insert into ob.delivery (n, sink, shard, key, due_at, waiting)
select e.n, coalesce(w.name, ''), coalesce(m.shard, (e.n % 32::bigint)::int), m.key, coalesce(m.at, ob.now()),
       w.name is not null and coalesce(m.at > ob.now(), false)
from e join m using (id)
left join lateral (select distinct s.name from s where s.types is null or e.type = any (s.types)) w on true
order by e.n`

/** Everything that was sent and is still there, in order. For tests. */
export const SENT = `
select source, id, type, key, body, envelope, (extract(epoch from created_at) * 1000.0)::bigint::text received
from ob.outbox where $1::text is not null order by n`

/**
 * Locks the set of sinks, so that it is read and changed by one at a time. A statement of its own: the next one sees all.
 * A process that stands still before it commits loses its session, and with it the lock, which all relays need.
 */
export const LOCK_SINKS = `
with limits as materialized (
  select set_config('lock_timeout', '5000', true), set_config('idle_in_transaction_session_timeout', '5000', true)
  where $1::text is not null
)
select s.version::text from limits, ob.sink_set s for update of s`

/**
 * Registers the sinks of a box, all in one statement, which locks the set itself: events that waited for a sink are then
 * given to all of them. In: `{ process, host, ms for which a process counts without a sign of life, look again at what was put
 * aside, s: [{ n name, t types or null, k keepMs }] }`. Out, as JSON: `differ`, what others say who do not agree:
 * `[{ sink, host, types }]`.
 */
export const REGISTER_SINKS = `
select ob.register_sinks($1::text::jsonb)::text differ`

/** A process stops: what it said of its sinks no longer counts. In: the process. */
export const RETIRE_SINKS = `
delete from ob.sink_declaration where process = ($1::text::jsonb->>0)::uuid`

/**
 * Whether the sinks that this statement sees are those there are, and stay so until it has committed: `locked` is the
 * version as it is now, `known` that of the snapshot. Where they differ, the statement must judge nothing. It waits a
 * second at most, then fails with 55P03: who holds the set for longer must not keep what has its sink from being published.
 */
const SINKS_STAND = `
known as materialized (select version from ob.sink_set),
limits as materialized (select set_config('lock_timeout', '1000', true)),
locked as materialized (select s.version from limits, ob.sink_set s for share of s),
stand as materialized (select 1 from known, locked where known.version = locked.version)`

/**
 * Looks again at events that were put aside, from where the sink is, and gives those that it wants to all who want them.
 * In: `{ sink, n how many to look at }`. Out: how many it `looked` at, and whether the sink is `through`. No row back:
 * the sinks have just changed, or another relay is at it. Index: delivery_waiting. Only rows that the sink wants
 * are locked, and they are waited for.
 */
export const CATCH_UP = `
with p as materialized (select $1::text::jsonb j),${SINKS_STAND},
progress as materialized (
  select c.due_at, c.n from p, ob.catch_up c
  where c.sink = j->>'sink' and exists (select 1 from stand) for update of c skip locked
),
seen as materialized (
  select d.n, d.due_at from ob.delivery d
  where d.sink = '' and d.parked is null and d.waiting
    and d.due_at >= (select due_at from progress) and (d.due_at, d.n) > (select due_at, n from progress)
  order by d.due_at, d.n limit (select (j->>'n')::int from p)
),
claimed as materialized (
  select d.n, d.shard, d.key, d.due_at from ob.delivery d
  where d.n = any (array(
      select seen.n from seen cross join lateral (select type from ob.outbox o where o.n = seen.n limit 1) o
      where exists (select 1 from p, ob.sink s where s.name = j->>'sink' and (s.types is null or o.type = any (s.types)))))
    and d.sink = '' and d.parked is null and d.waiting
  for update
),
given as (
  insert into ob.delivery (n, sink, shard, key, due_at, waiting)
  select c.n, s.name, c.shard, c.key, c.due_at, c.due_at > ob.now()
  from claimed c cross join lateral (select type from ob.outbox o where o.n = c.n limit 1) o
  join ob.sink s on s.types is null or o.type = any (s.types) order by c.n
  on conflict do nothing
),
gone as (delete from ob.delivery d where d.sink = '' and d.n in (select n from claimed)),
looked as materialized (select count(*) < (select (j->>'n')::int from p) through, count(*) n from seen),
moved as (
  update ob.catch_up c set (due_at, n) = (select due_at, n from seen order by due_at desc, n desc limit 1)
  from p, looked where c.sink = j->>'sink' and not looked.through and exists (select 1 from progress)
),
ended as (delete from ob.catch_up c using p, looked where c.sink = j->>'sink' and looked.through
  and exists (select 1 from progress))
select looked.n::text looked, looked.through::text through from looked, progress`

/**
 * Gives events that were sent before there was a sink to the sinks that want them; what nobody wants is put aside.
 * In: how many to look at. Out: how many it looked at. None: there are none, others hold them, or the sinks have just
 * changed.
 */
export const ASSIGN = `
with p as materialized (select $1::text::jsonb j),${SINKS_STAND},
u as materialized (
  select n from ob.delivery where sink = '' and parked is null and not waiting and exists (select 1 from stand)
  order by n limit (select (j->>0)::int from p) for update skip locked
),
w as materialized (
  select u.n, s.name from u join ob.outbox o using (n) join ob.sink s on s.types is null or o.type = any (s.types)
),
i as (
  insert into ob.delivery (n, sink, shard, key, due_at, waiting)
  select d.n, w.name, d.shard, d.key, d.due_at, d.due_at > ob.now()
  from w cross join lateral (select * from ob.delivery d where d.n = w.n and d.sink = '' limit 1) d order by d.n
  on conflict do nothing
),
d as (delete from ob.delivery d where d.sink = '' and d.n = any (array(select n from w))),
a as (update ob.delivery d set waiting = true
  where d.sink = '' and d.n = any (array(select n from u except select n from w)))
select count(*)::text looked from u`

/**
 * What has to wait. `behind`: the sink has still to look at events that were put aside; where it `holds`, they may be
 * older than all that it has. `held`: keys that have to wait: one of their events failed and is not due again, or was sent before there was a sink and still
 * needs one. A list to be hashed, next to nothing as a rule: as a join or a correlated subquery the planner would expect
 * few events to be left, and read the whole backlog to sort it.
 */
export const HELD_BACK = `
behind as materialized (select c.holds from p, ob.catch_up c where c.sink = j->>'sink'),
held as materialized (
  select f.key from ob.delivery f
  where f.sink = (select j->>'sink' from p) and f.parked is null and f.waiting and f.attempts > 0 and f.key is not null
  union
  select u.key from ob.delivery u where u.sink = '' and u.parked is null and not u.waiting and u.key is not null
)`

/**
 * Leases shards that have something to publish, those first that were served longest ago. In: `{ sink, k token, lease ms,
 * n shards, most events without a sink }`. Out: the `shards`; whether waiting events fell due (`promoted`) or need a sink
 * (`unassigned`), so that it pays to ask again; whether the sink has still to look at what was put aside (`behind`:
 * 'holds' or 'open'); and when the next one falls due, in ms. Where nothing is due, nothing is written. No shards where
 * the sink must look first, or where so many events need a sink that to tell their keys apart would take too long.
 *
 * Shards with events are found by jumping along delivery_live, from each to the next: asked for each shard in turn, the
 * planner would expect an event in every shard, and read the whole table for one that has none. A range of one shard in
 * place of an equation, here and where events are read, because only that index then has the order.
 */
export const CLAIM_SHARDS = `
with recursive p as materialized (select $1::text::jsonb j),${HELD_BACK},
w as (
  update ob.delivery d set waiting = false
  where d.ctid = any (array(
    select ctid from ob.delivery
    where sink = (select j->>'sink' from p) and parked is null and waiting and due_at <= ob.now()
    order by due_at limit 1000 for update skip locked))
  returning 1
),
unassigned as materialized (
  select count(*) n from (
    select 1 from ob.delivery where sink = '' and parked is null and not waiting
    limit (select (j->>'most')::int + 1 from p)) x
),
live(shard) as (
  (select d.shard from ob.delivery d
   where d.sink = (select j->>'sink' from p) and d.shard >= 0 and d.parked is null and not d.waiting
   order by d.shard, d.n limit 1)
  union all
  select (
    select d.shard from ob.delivery d
    where d.sink = (select j->>'sink' from p) and d.shard > live.shard and d.parked is null and not d.waiting
    order by d.shard, d.n limit 1)
  from live where live.shard is not null
),
c as (
  update ob.shard h set token = (select (j->>'k')::uuid from p),
    due_at = ob.now() + (select (j->>'lease')::float8 * interval '1 ms' from p)
  where h.ctid = any (array(
    select h.ctid from live join ob.shard h on h.sink = (select j->>'sink' from p) and h.shard = live.shard
    cross join lateral (
      select 1 from ob.delivery d
      where d.sink = h.sink and d.shard >= live.shard and d.shard <= live.shard and d.parked is null and not d.waiting
        and (d.key is null or d.key not in (select key from held))
      order by d.shard, d.n limit 1) d
    where h.due_at <= ob.now() and not exists (select 1 from behind where holds)
      and (select n from unassigned) <= (select (j->>'most')::int from p)
    order by h.due_at, h.shard limit (select (j->>'n')::int from p) for update of h skip locked))
  returning h.shard
)
select coalesce((select jsonb_agg(shard) from c), '[]')::text shards,
  ((select count(*) from w) > 0)::text promoted,
  ((select n from unassigned) > 0)::text unassigned,
  (select case when holds then 'holds' else 'open' end from behind) behind,
  (select greatest(0, extract(epoch from d.due_at - ob.now()) * 1000.0)::bigint::text from ob.delivery d
    where d.sink = (select j->>'sink' from p) and d.parked is null and d.waiting and d.due_at > ob.now()
    order by d.due_at limit 1) next`

/** The attempts of a delivery `d` that count. One that waits for nothing but its destination has an error that says so. */
export const COUNTED = `
case when d.attempts = 1 and starts_with(d.error, '{"uncounted":true') then 0 else d.attempts end`

/**
 * Reads the next events of leased shards, oldest first. In: `{ sink, s shards, depth per shard, n limit, bytes }`.
 * A statement of its own: the snapshot of the lease could still show what the previous holder published.
 */
export const READ_SHARDS = `
with p as materialized (select $1::text::jsonb j),${HELD_BACK},
b as materialized (
  select d.n, d.shard, d.attempts from p, unnest(array(select jsonb_array_elements_text(j->'s')::int from p)) s(shard)
  cross join lateral (
    select d.n, d.shard,${COUNTED} attempts from ob.delivery d
    where d.sink = j->>'sink' and d.shard >= s.shard and d.shard <= s.shard and d.parked is null and not d.waiting
      and (d.key is null or d.key not in (select key from held))
    order by d.shard, d.n limit (select (j->>'depth')::int from p)) d
  where not exists (select 1 from behind where holds)
  order by d.n limit (select (j->>'n')::int from p)
),
e as (
  select b.shard, b.attempts, o.*, sum(octet_length(o.body)) over (order by b.n) - octet_length(o.body) before
  from b cross join lateral (select * from ob.outbox o where o.n = b.n limit 1) o
)
select n::text, shard::text, attempts::text, source, id, type, key, body, envelope,
       (extract(epoch from created_at) * 1000.0)::bigint::text created
from e where before < (select (j->>'bytes')::bigint from p) order by e.n`

/**
 * Records what became of a batch and gives its shards back. In: `{ sink, k token, done: [n, …], fail: [{ n, ms delay,
 * p parked, e error, later }] }`: with `later` the attempt does not count. Only in shards that still carry our token: the others were taken over, and their events are
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
  select d.ctid tid, d.n, x->>'e' error, x->>'p' parked, x->>'later' is not null later, coalesce((x->>'ms')::float8, 0) ms
  from p, jsonb_array_elements(j->'fail') x cross join lateral (
    select d.ctid, d.n, d.shard from ob.delivery d where d.n = (x->>'n')::bigint and d.sink = j->>'sink' limit 1) d
  where d.shard in (select shard from h)
),
f as (
  update ob.delivery d set (attempts, error, parked, waiting, due_at) = (
    select case when x.later then greatest(1, d.attempts) else${COUNTED} + 1 end, x.error, x.parked, x.parked is null, ob.now() + x.ms * interval '1 ms' from x where x.n = d.n)
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
 * Whether COMPLETE has done its work, after its answer was lost. In: what COMPLETE was given. Out: how many deliveries are
 * as it leaves them: gone, or with the error. Index: the primary key.
 */
export const COMPLETED = `
with p as materialized (select $1::text::jsonb j)
select (
  (select count(*) from p, jsonb_array_elements_text(j->'done') x
   where not exists (select 1 from ob.delivery d where d.n = x::bigint and d.sink = j->>'sink'))
  + (select count(*) from p, jsonb_array_elements(j->'fail') x
   where exists (select 1 from ob.delivery d
     where d.n = (x->>'n')::bigint and d.sink = j->>'sink' and d.error = x->>'e')))::text recorded`

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
 * a delivery. Several sinks can leave one, and one of them may be removed since. In: `{ after the number, n how many to look at }`. Out: the `last` number
 * it looked at; null at the end. Index: the primary keys.
 */
export const FINISH_LEFT = `
with p as materialized (select (j->>'after')::bigint after, (j->>'n')::int n from (select $1::text::jsonb j) x),
seen as materialized (
  select o.n from ob.outbox o where o.n > (select after from p)
  order by o.n limit (select n from p)
),
o as materialized (
  select o.n from ob.outbox o
  where o.n = any (array(
      select seen.n from seen where (select 1 from ob.delivery d where d.n = seen.n limit 1) is null))
    and o.published_at is null
  order by o.n for update skip locked
),
keep as materialized (select coalesce(max(keep_ms), 0) > 0 it from ob.sink),
gone as (delete from ob.outbox e using o, keep where e.n = o.n and not keep.it),
kept as (update ob.outbox e set published_at = ob.now() from o, keep where e.n = o.n and keep.it)
select case when count(*) >= (select n from p) then max(n)::text end last from seen`

/**
 * Heartbeat. In: `{ sink, k token, lease ms }`. It waits for shards that others have locked: a heartbeat that skipped them
 * would extend nothing and not know it. Out: how many still carried our token, and were extended. None: the lease is lost.
 */
export const EXTEND_SHARDS = `
with p as materialized (select $1::text::jsonb j),
held as materialized (
  select h.shard from p, ob.shard h where h.sink = j->>'sink' and h.token = (j->>'k')::uuid order by h.shard for update of h
),
extended as (
  update ob.shard h set due_at = ob.now() + (select (j->>'lease')::float8 * interval '1 ms' from p)
  where h.sink = (select j->>'sink' from p) and h.token = (select (j->>'k')::uuid from p) and h.shard in (select shard from held)
  returning 1
)
select count(*)::text extended from extended`

/** Gives shards back. In: `{ sink, k token }`. */
export const RELEASE_SHARDS = `
with p as materialized (select $1::text::jsonb j)
update ob.shard h set token = null, due_at = ob.now() from p where h.sink = j->>'sink' and h.token = (j->>'k')::uuid`

/**
 * Removes a sink, under LOCK_SINKS, unless it is in use. In: `{ sink, ms for which a process counts without a sign of
 * life }`. Out: whether it is `known`, and `users`: the processes that have it attached, as JSON; it stays if there is one, or
 * if a relay holds one of its shards (`leased`). And `last`, the number of the last event that was sent until now. Indexes:
 * delivery_live, delivery_waiting and delivery_parked, each named by the order under its limit, as in the statements below.
 */
export const REMOVE_SINK = `
with p as materialized (select $1::text::jsonb j),
users as materialized (
  select d.host from p, ob.sink_declaration d
  where d.sink = j->>'sink' and d.seen_at >= ob.now() - (j->>'ms')::float8 * interval '1 ms'
),
shards as materialized (
  select h.shard, h.token is not null and h.due_at > ob.now() live from p, ob.shard h
  where h.sink = j->>'sink' order by h.shard for update of h
),
free as materialized (
  select 1 where not exists (select 1 from users) and not exists (select 1 from shards where live)
),
known as materialized (
  select exists (select 1 from ob.sink k where k.name = j->>'sink') or j->>'sink' <> '' and coalesce(
    (select d.n from ob.delivery d where d.sink = j->>'sink' and d.parked is null and not d.waiting
      order by d.shard, d.n limit 1),
    (select d.n from ob.delivery d where d.sink = j->>'sink' and d.parked is null and d.waiting
      order by d.due_at limit 1),
    (select d.n from ob.delivery d where d.sink = j->>'sink' and d.parked is not null
      order by d.parked, d.n limit 1)) is not null it from p
),
declarations as (delete from ob.sink_declaration d using p, free where d.sink = j->>'sink'),
catching_up as (delete from ob.catch_up c using p, free where c.sink = j->>'sink'),
leases as (delete from ob.shard h using p, free where h.sink = j->>'sink'),
unmarked as (delete from ob.removed_sink r using p where r.sink = j->>'sink'),
gone as (delete from ob.sink k using p, free where k.name = j->>'sink' returning 1),
counted as (update ob.sink_set set version = version + 1 where exists (select 1 from gone))
select known.it::text known, (exists (select 1 from shards where live))::text leased,
  coalesce((select jsonb_agg(host) from users), '[]')::text users,
  greatest((select max(n) from ob.outbox), pg_sequence_last_value(pg_get_serial_sequence('ob.outbox', 'n')), 0)::text last
from known`

/**
 * Deletes deliveries of a sink that there is no longer. In: `{ sink, n how many, last number }`: later ones are of a process
 * that has attached the sink again. Out: their numbers, for FINISH_SHARED. No row back: there are none, others hold them,
 * or the sink is back; see MARK_REMOVED. Indexes: delivery_live, delivery_waiting and delivery_parked.
 */
export const REMOVE_DELIVERIES = `
with p as materialized (
  select j->>'sink' sink, (j->>'n')::int n, (j->>'last')::bigint last from (select $1::text::jsonb j) x
),${SINKS_STAND},
free as materialized (select 1 from stand where not exists (select 1 from p join ob.sink k on k.name = p.sink))
delete from ob.delivery d where exists (select 1 from free) and d.ctid = any (
    array(select d.ctid from ob.delivery d
      where d.sink = (select sink from p) and d.parked is null and not d.waiting and d.n <= (select last from p)
      order by d.shard, d.n limit (select n from p) for update skip locked)
    || array(select d.ctid from ob.delivery d
      where d.sink = (select sink from p) and d.parked is null and d.waiting and d.n <= (select last from p)
      order by d.due_at limit (select n from p) for update skip locked)
    || array(select d.ctid from ob.delivery d
      where d.sink = (select sink from p) and d.parked is not null and d.n <= (select last from p)
      order by d.parked, d.n limit (select n from p) for update skip locked))
returning d.n::text`

/**
 * Ends a removal. In: `{ sink, last number }`. Out: `done`; `back`, a process has attached the sink again; or `more`: there
 * are deliveries left, or the sinks have just changed.
 */
export const MARK_REMOVED = `
with p as materialized (select j->>'sink' sink, (j->>'last')::bigint last from (select $1::text::jsonb j) x),${SINKS_STAND},
state as materialized (
  select case when not exists (select 1 from stand) then 'more'
    when exists (select 1 from ob.sink k where k.name = p.sink) then 'back'
    when coalesce(
      (select d.n from ob.delivery d where d.sink = p.sink and d.parked is null and not d.waiting and d.n <= p.last
        order by d.shard, d.n limit 1),
      (select d.n from ob.delivery d where d.sink = p.sink and d.parked is null and d.waiting and d.n <= p.last
        order by d.due_at limit 1),
      (select d.n from ob.delivery d where d.sink = p.sink and d.parked is not null and d.n <= p.last
        order by d.parked, d.n limit 1)) is not null then 'more'
    else 'done' end state from p
),
marked as (
  insert into ob.removed_sink as r (sink, n) select p.sink, p.last from p, state where state = 'done'
  on conflict (sink) do update set n = excluded.n
)
select state from state`

/**
 * Finds other sinks for events whose transactions were open while their sink was removed, and committed since: nobody else
 * would. A sink that has had such an event may get it again. In: how many to look at. Out: how many there were. Indexes:
 * delivery_live and delivery_waiting.
 */
export const RECLAIM = `
with p as materialized (select ($1::text::jsonb->>0)::int n),${SINKS_STAND},
removed as materialized (
  select r.sink, r.n from stand, ob.removed_sink r where not exists (select 1 from ob.sink k where k.name = r.sink)
),
gone as (
  delete from ob.delivery d where d.ctid = any (
    array(select d.ctid from removed r cross join lateral (
      select d.ctid from ob.delivery d where d.sink = r.sink and d.parked is null and not d.waiting and d.n <= r.n
      order by d.shard, d.n limit (select n from p) for update skip locked) d)
    || array(select d.ctid from removed r cross join lateral (
      select d.ctid from ob.delivery d where d.sink = r.sink and d.parked is null and d.waiting and d.n <= r.n
      order by d.due_at limit (select n from p) for update skip locked) d))
  returning d.n, d.shard, d.key, d.due_at
),
unassigned as (
  insert into ob.delivery (n, sink, shard, key, due_at)
  select distinct on (n) n, '', shard, key, due_at from gone order by n
  on conflict do nothing
)
select count(*)::text found from gone`

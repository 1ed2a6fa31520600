/**
 * Statements by which a person changes the fate of messages, at most a few hundred at a time.
 *
 * All take keys that a search found, and judge each row again under its lock: what changed meanwhile, and what
 * somebody holds, is left alone. Lanes are locked first, in the order of their keys, as everywhere.
 */

/**
 * Where a walk upwards must end, so that it does not chase what arrives meanwhile. `nextval` rather than a look at the
 * sequence: workers have the right to it.
 */
export const WALK_END = `
select to_char(ob.now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') "at", nextval('ob.seq')::text seq,
  coalesce((select max(n) from ob.quarantine), 0)::text n, coalesce((select max(n) from ob.outbox), 0)::text sent
where $1::text is not null`

/**
 * Makes parked messages pending again, with all their attempts. In: `{ k: [[consumer, source, id], …], s: parked }`.
 * They keep their place in their lane. A dead message that blocks its lane frees it; a discarded one never did block,
 * so it waits with the rest if another does. Out: the keys of those that were changed.
 */
export const RETRY = `
with p as materialized (select $1::text::jsonb j),
k as materialized (
  select distinct w.consumer, w.source, w.id, w.lane from p, jsonb_array_elements(j->'k') e cross join lateral (
    select * from ob.work w where w.consumer = e->>0 and w.source = e->>1 and w.id = e->>2 limit 1) w
),
l as materialized (
  select l.consumer, l.key from (select distinct consumer, lane from k where lane is not null) d
  join ob.lane l on l.consumer = d.consumer and l.key = d.lane
  order by l.consumer, l.key for update of l
),
f as materialized (
  select w.consumer, w.source, w.id, w.parked from k
  join ob.work w on w.consumer = k.consumer and w.source = k.source and w.id = k.id
  left join l on l.consumer = k.consumer and l.key = k.lane
  where w.parked in (select jsonb_array_elements_text(j->'s') from p)
  order by w.consumer, w.source, w.id for update of w skip locked
),
u as (
  update ob.work w set parked = null, reason = null, token = null, suspect = false, attempts = 0, due_at = ob.now()
  from f where w.consumer = f.consumer and w.source = f.source and w.id = f.id
  returning w.consumer, w.source, w.id, w.lane, f.parked was
),
n as materialized (
  select consumer, lane, bool_or(was <> 'discarded') frees from u where lane is not null group by consumer, lane
),
freed as (
  update ob.lane x set dirty = true, blocked = x.blocked and not n.frees,
    due_at = case when x.token is null and (n.frees or not x.blocked) then ob.now() else x.due_at end
  from n join l on l.consumer = n.consumer and l.key = n.lane
  where x.consumer = n.consumer and x.key = n.lane
),
made as (
  insert into ob.lane as x (consumer, key, due_at)
  select n.consumer, n.lane, ob.now() from n
  where not exists (select 1 from l where l.consumer = n.consumer and l.key = n.lane) order by n.consumer, n.lane
  on conflict (consumer, key) do update set dirty = true,
    due_at = case when x.due_at = 'infinity' and x.token is null and not x.blocked then excluded.due_at else x.due_at end
)
select consumer, source, id from u`

/**
 * Makes handled messages pending again: a replay. In: `{ k: [[consumer, source, id], …], c: [{ n, o }, …] }`, where
 * `c` are the local consumers and whether they are ordered. Out: the keys of those that were changed.
 *
 * The journal row is written too, in its lock: retention that judged it before finds another version and lets it be.
 */
export const REPLAY = `
with p as materialized (select $1::text::jsonb j),
k as materialized (select distinct e->>0 consumer, e->>1 source, e->>2 id from p, jsonb_array_elements(j->'k') e),
o as materialized (
  select name, ordered from ob.consumer where name not in (select x->>'n' from p, jsonb_array_elements(j->'c') x)
  union all select x->>'n', (x->>'o')::boolean from p, jsonb_array_elements(j->'c') x
),
m as materialized (
  select m.consumer, m.source, m.id, m.received_at,
    case when o.ordered then coalesce(m.envelope::jsonb->>'lane', m.key) end lane
  from k join ob.message m on m.consumer = k.consumer and m.source = k.source and m.id = k.id
  left join o on o.name = m.consumer
  where not exists (select 1 from ob.work w where w.consumer = m.consumer and w.source = m.source and w.id = m.id)
  order by m.consumer, m.source, m.id for no key update of m skip locked
),
lanes as (
  insert into ob.lane as l (consumer, key, due_at)
  select consumer, lane, ob.now() from m where lane is not null group by consumer, lane order by consumer, lane
  on conflict (consumer, key) do update set dirty = true,
    due_at = case when l.due_at = 'infinity' and l.token is null and not l.blocked then excluded.due_at else l.due_at end
  returning consumer, key
),
w as (
  insert into ob.work as w (consumer, source, id, seq, lane, due_at)
  select consumer, source, id, nextval('ob.seq'), lane, ob.now()
  from (select m.* from m left join lanes on lanes.consumer = m.consumer and lanes.key = m.lane
        where m.lane is null or lanes.key is not null order by m.received_at, m.consumer, m.source, m.id) x
  on conflict do nothing
  returning w.consumer, w.source, w.id
)
update ob.message x set result = null from w
where x.consumer = w.consumer and x.source = w.source and x.id = w.id
returning x.consumer, x.source, x.id`

/**
 * Discards messages that nobody holds. In: `{ k: [[consumer, source, id], …], s: states }`, of dead, quarantined and
 * pending. A dead message that blocks its lane frees it. A lease that has run out gets another token, so that a worker
 * that comes back late cannot settle what was discarded. Out: the keys of those that were changed.
 */
export const DISCARD = `
with p as materialized (select array(select jsonb_array_elements_text(j->'s')) states, j
  from (select $1::text::jsonb j) x),
k as materialized (
  select distinct w.consumer, w.source, w.id, w.lane from p, jsonb_array_elements(j->'k') e cross join lateral (
    select * from ob.work w where w.consumer = e->>0 and w.source = e->>1 and w.id = e->>2 limit 1) w
),
l as materialized (
  select l.consumer, l.key, l.token is not null and l.due_at > ob.now() live
  from (select distinct consumer, lane from k where lane is not null) d
  join ob.lane l on l.consumer = d.consumer and l.key = d.lane
  order by l.consumer, l.key for update of l
),
f as materialized (
  select w.consumer, w.source, w.id, w.parked from p, k
  join ob.work w on w.consumer = k.consumer and w.source = k.source and w.id = k.id
  left join l on l.consumer = k.consumer and l.key = k.lane
  where (w.parked in ('dead', 'quarantined') and w.parked = any (p.states))
    or ('pending' = any (p.states) and (w.parked = 'failed' or w.parked is null
        and (w.token is null or w.due_at <= ob.now()) and not coalesce(l.live, false)))
  order by w.consumer, w.source, w.id for update of w skip locked
),
u as (
  update ob.work w set parked = 'discarded', token = null, suspect = false, due_at = 'infinity'
  from f where w.consumer = f.consumer and w.source = f.source and w.id = f.id
  returning w.consumer, w.source, w.id, w.lane, f.parked was
),
n as materialized (
  select consumer, lane, bool_or(was is not null) frees from u where lane is not null group by consumer, lane
),
freed as (
  update ob.lane x set
    token = case when x.token is not null and not l.live then gen_random_uuid() else x.token end,
    blocked = x.blocked and not n.frees,
    due_at = case when x.blocked and n.frees and x.token is null then ob.now() else x.due_at end
  from n join l on l.consumer = n.consumer and l.key = n.lane
  where x.consumer = n.consumer and x.key = n.lane
)
select consumer, source, id from u`

/** Discards what is in quarantine. In: `{ n: [row, …], r reason }`. Out: the rows that were changed. */
export const DISCARD_QUARANTINED = `
with p as materialized (select $1::text::jsonb j),
f as materialized (
  select q.n from p, jsonb_array_elements_text(j->'n') x join ob.quarantine q on q.n = x::bigint
  where q.discarded is null order by q.n for update of q skip locked
)
update ob.quarantine q set discarded = j->>'r' from p, f where q.n = f.n and q.discarded is null returning q.n::text`

/**
 * What is in quarantine, to be released. In: `{ n: [row, …], bytes }`. Out, by number: as many as fit into so many bytes, one
 * at least, and whether there is `more`. A row missing from an answer without more is gone already.
 */
export const READ_QUARANTINED = `
with input as materialized (select $1::text::jsonb j),
sized as materialized (
  select q.n, sum(coalesce(octet_length(q.body), 0) + coalesce(octet_length(q.bytes), 0)) over (order by q.n)
    - coalesce(octet_length(q.body), 0) - coalesce(octet_length(q.bytes), 0) before
  from input, jsonb_array_elements_text(j->'n') x join ob.quarantine q on q.n = x::bigint
)
select q.n::text, q.consumer, q.source, q.id, q.type, q.key, q.reason, q.body, encode(q.bytes, 'base64') bytes,
  encode(coalesce(q.fingerprint, q.hash), 'hex') hash, q.envelope, q.via, to_json(q.received_at)#>>'{}' since,
  exists (select 1 from sized s, input where s.before >= (j->>'bytes')::bigint)::text more
from input, sized join ob.quarantine q using (n) where sized.before < (j->>'bytes')::bigint order by q.n`

/**
 * Locks what is to be released, before it is received in the same transaction. In: `{ rows: [[number, state], …], wait }`,
 * where `wait` is for how long. Out, by number: those that are still there in that state, and whom they are meant for, as
 * JSON, null for all. They are locked in the order in which copies of them come in, see QUARANTINE_OF_NOBODY.
 */
export const LOCK_QUARANTINED = `
with input as materialized (
  select j, set_config('lock_timeout', j->>'wait', true) from (select $1::text::jsonb j) x
),
locked as materialized (
  select q.n, q.meant from input, jsonb_array_elements(j->'rows') x join ob.quarantine q on q.n = (x->>0)::bigint
  where case when q.discarded is null then 'quarantined' else 'discarded' end = x->>1
  order by q.consumer, q.source, q.id, q.reason, q.hash for update of q
)
select locked.n::text, to_json(locked.meant)::text meant from locked order by locked.n`

/** Removes messages from quarantine, locked before, that were received. In: their numbers. */
export const REMOVE_QUARANTINED = `
delete from ob.quarantine q using jsonb_array_elements_text($1::text::jsonb) x where q.n = x::bigint returning q.n::text`

/** Publishes events again that are dead or discarded. In: `{ k: [[n, sink], …], s: parked }`. Out: those that were changed. */
export const RETRY_DELIVERIES = `
with p as materialized (select $1::text::jsonb j),
f as materialized (
  select d.n, d.sink from p, jsonb_array_elements(j->'k') e join ob.delivery d on d.n = (e->>0)::bigint and d.sink = e->>1
  where d.parked in (select jsonb_array_elements_text(j->'s') from p)
  order by d.n, d.sink for update of d skip locked
)
update ob.delivery d set parked = null, waiting = false, attempts = 0, due_at = ob.now()
from f where d.n = f.n and d.sink = f.sink returning d.n::text`

/**
 * Gives up events that no relay holds. In: `{ k: [[n, sink], …], s: states }`, of dead and pending. A lease that has run
 * out gets another token, so that its relay cannot record anything any more. Out: those that were changed.
 */
export const DISCARD_DELIVERIES = `
with p as materialized (select array(select jsonb_array_elements_text(j->'s')) states, j
  from (select $1::text::jsonb j) x),
k as materialized (
  select distinct d.n, d.sink, d.shard from p, jsonb_array_elements(j->'k') e
  join ob.delivery d on d.n = (e->>0)::bigint and d.sink = e->>1
),
h as materialized (
  select h.sink, h.shard, h.token is not null and h.due_at > ob.now() live
  from (select distinct sink, shard from k) x join ob.shard h on h.sink = x.sink and h.shard = x.shard
  order by h.sink, h.shard for update of h
),
f as materialized (
  select d.n, d.sink, d.shard from p, k join ob.delivery d on d.n = k.n and d.sink = k.sink
  left join h on h.sink = k.sink and h.shard = k.shard
  where (d.parked = 'dead' and 'dead' = any (p.states))
    or (d.parked is null and 'pending' = any (p.states) and not coalesce(h.live, false))
  order by d.n, d.sink for update of d skip locked
),
fenced as (
  update ob.shard x set token = gen_random_uuid() from h
  where x.sink = h.sink and x.shard = h.shard and x.token is not null and not h.live
    and exists (select 1 from f where f.sink = h.sink and f.shard = h.shard)
)
update ob.delivery d set parked = 'discarded', waiting = false
from f where d.n = f.n and d.sink = f.sink returning d.n::text`

/** Statements for strict order per key: workers claim lanes, not messages. */

/**
 * Claims due lanes. In: `{ c, k, lease, n, until, calm }`. Out: their keys, and whether their last worker died. Like CLAIM
 * it does not wait for the disk, and takes nothing that has fallen due after `until`, nor, if `calm`, carries a token. A lane whose holder is waiting to extend
 * it (EXTEND_LANE) is left to that holder.
 */
export const CLAIM_LANES = `
with p as materialized (select $1::text::jsonb j, set_config('synchronous_commit', 'off', true))
update ob.lane l set suspect = (l.token is not null), token = (select (j->>'k')::uuid from p), dirty = false,
  due_at = ob.now() + (select (j->>'lease')::float8 * interval '1 ms' from p)
where l.ctid = any (array(
  select ctid from ob.lane
  where consumer = (select j->>'c' from p) and due_at <= ob.now() and due_at < 'infinity'
    and due_at <= (select coalesce((j->>'until')::timestamptz, 'infinity') from p)
    and not exists (select 1 from ob.consumer o where o.name = (select j->>'c' from p) and o.paused)
    and (token is null or (select (j->>'calm')::boolean is not true from p)
      and pg_try_advisory_xact_lock(hashtextextended(token::text, 0)))
  order by due_at limit (select (j->>'n')::int from p) for update skip locked))
returning l.key, l.suspect::text`

/**
 * Reads the messages of claimed lanes, oldest first, at most `n` of each. A statement of its own: the snapshot of the
 * claim could still show messages that the previous holder settled.
 */
export const READ_LANES = `
with p as materialized (select $1::text::jsonb j)
select w.source, w.id, m.n::text, w.lane, w.attempts::text, 'false' suspect, m.type, m.key, m.body, m.envelope, m.origin_source,
       m.origin_id, (extract(epoch from m.received_at) * 1000.0)::bigint::text received
from p, jsonb_array_elements_text(j->'lanes') k(key)
cross join lateral (select * from ob.work w where w.consumer = j->>'c' and w.lane = k.key and w.parked is null
  order by w.seq limit (select (j->>'n')::int from p)) w
cross join lateral (select * from ob.message m
  where m.consumer = w.consumer and m.source = w.source and m.id = w.id limit 1) m
order by w.lane, w.seq`

/**
 * Settles messages and the lanes they came from, together. In: `{ c, k, x, g, d: [[source, id, n], …],
 * rel: [[key, more], …] lanes given back, keep: [key, …] lanes with messages still to run }`. Raises unless every lane
 * still carries our token. A lane that got new messages meanwhile (`dirty`) falls due at once.
 */
export const SETTLE_LANES = `
with p as materialized (select $1::text::jsonb j),
k as materialized (
  select j->>'c' consumer, (j->>'k')::uuid token, x->>0 key, (x->>1)::boolean more
  from p, unnest(array(select jsonb_array_elements(j->'rel') from p)
    || array(select jsonb_build_array(jsonb_array_elements(j->'keep')) from p)) x
),
l as materialized (
  select l.key from k, ob.lane l
  where l.consumer = k.consumer and l.key = k.key and l.token = k.token
  order by l.key for update of l
),
u as (
  update ob.lane x set token = null, suspect = false, dirty = false,
    due_at = case when x.dirty or k.more then ob.now() else 'infinity' end
  from k join l using (key)
  where x.consumer = k.consumer and x.key = k.key and x.token = k.token and k.more is not null returning 1
),
e as materialized (
  select j->>'c' consumer, x->>0 source, x->>1 id, (x->>2)::bigint n
  from p, unnest(array(select jsonb_array_elements(j->'d') from p)) x
),
d as (
  delete from ob.work w using e
  where w.consumer = e.consumer and w.source = e.source and w.id = e.id and w.lane in (select key from l) returning e.n
),
handled as (
  insert into ob.handled (n, at) select n, ob.now() from d where n is not null
  on conflict (n) do update set at = excluded.at
)
select ob.close_transaction((j->>'x')::xid8, (j->>'g')::tid), case
  when (select count(*) from u) <> jsonb_array_length(j->'rel')
    or (select count(*) from l) <> jsonb_array_length(j->'rel') + jsonb_array_length(j->'keep')
    or (select count(*) from d) <> jsonb_array_length(j->'d')
    then ob.refuse('OB001', 'the claim was lost')
end from p`

/**
 * Gives lanes back without settling anything. In: `{ c, k, rel: [[key, delay in ms or null], …], undo: [[source, id, attempts],
 * …] messages whose attempt was counted, with what it was before }`; null means at once if anything arrived, else when something
 * does. Lanes missing from the answer were lost.
 */
export const RELEASE_LANES = `
with p as materialized (select $1::text::jsonb j),
r as materialized (
  select j->>'c' consumer, (j->>'k')::uuid token, x->>0 key, (x->>1)::float8 ms
  from p, unnest(array(select jsonb_array_elements(j->'rel') from p)) x
),
l as materialized (
  select l.key from r, ob.lane l
  where l.consumer = r.consumer and l.key = r.key and l.token = r.token order by l.key for update of l
),
b as (
  update ob.work w set attempts = (e->>2)::int from p, unnest(array(select jsonb_array_elements(j->'undo') from p)) e
  where w.consumer = j->>'c' and w.source = e->>0 and w.id = e->>1 and w.lane in (select key from l)
)
update ob.lane x set token = null, suspect = false, dirty = false,
  due_at = case when r.ms is not null then ob.now() + r.ms * interval '1 ms'
                when x.dirty then ob.now() else 'infinity' end
from r join l using (key)
where x.consumer = r.consumer and x.key = r.key and x.token = r.token
returning x.key`

/**
 * Records the failure of a lane's first message and gives the lane back: delayed, blocked behind a dead message, or,
 * where dead messages are skipped, due at once. In: `{ c, k, key, s, i, n, ms, p parked, r, e, h, block }`.
 * No row back: the lane was lost.
 */
export const FAIL_LANE = `
with p as materialized (select $1::text::jsonb j),
l as materialized (
  select l.key from p, ob.lane l
  where l.consumer = j->>'c' and l.key = j->>'key' and l.token = (j->>'k')::uuid for update of l
),
u as (
  update ob.work w set attempts = greatest(0, w.attempts + (j->>'n')::int), error = coalesce(j->>'e', w.error),
    parked = j->>'p', reason = j->>'r', due_at = case when j->>'p' is not null then 'infinity' else w.due_at end
  from p, l where w.consumer = j->>'c' and w.source = j->>'s' and w.id = j->>'i' and w.lane = l.key
  returning w.consumer, w.source, w.id, w.attempts
),
x as (
  update ob.lane x set token = null, suspect = false, dirty = false, blocked = (j->>'block')::boolean,
    due_at = case when (j->>'block')::boolean then 'infinity'
                  when j->>'at' is not null then greatest((j->>'at')::timestamptz, ob.now())
                  else ob.now() + (j->>'ms')::float8 * interval '1 ms' end
  from p, l, u where x.consumer = j->>'c' and x.key = l.key and x.token = (j->>'k')::uuid
  returning 1
),
a as (
  insert into ob.attempt (consumer, source, id, attempt, error)
  select u.consumer, u.source, u.id, u.attempts, j->>'e' from p, u, x
  where coalesce((j->>'h')::boolean, false) and j->>'e' is not null
)
select u.source, u.id, u.attempts::text from u, x`

/**
 * Heartbeat of lanes. In: `{ c, k, lease, lanes: [key, …] }`. Out: the lanes that still carry our token, and whether they
 * were extended: what is locked is skipped, and is EXTEND_LANE's to wait for. A lane missing from the answer was lost, or
 * is settled. Like a claim it does not wait for the disk: a server that crashes forgets one heartbeat of three.
 */
export const EXTEND_LANES = `
with p as materialized (select $1::text::jsonb j, set_config('synchronous_commit', 'off', true)),
asked as materialized (
  select j->>'c' consumer, (j->>'k')::uuid token, x key
  from p, unnest(array(select jsonb_array_elements_text(j->'lanes') from p)) x
),
extended as (
  update ob.lane l set due_at = ob.now() + (select (j->>'lease')::float8 * interval '1 ms' from p)
  where l.ctid = any (array(
    select l.ctid from asked, ob.lane l
    where l.consumer = asked.consumer and l.key = asked.key and l.token = asked.token for update of l skip locked))
  returning l.key
)
select l.key, exists (select 1 from extended where extended.key = l.key)::text extended
from asked join ob.lane l on l.consumer = asked.consumer and l.key = asked.key and l.token = asked.token`

/**
 * Heartbeat of a lane that receivers keep locked: waits for its turn. One lane for each statement, so that no other lane
 * is held up meanwhile and nothing can deadlock. In: `{ c, k, lease, key, wait }`. No row back: it was lost, or is
 * settled. While it waits, its advisory lock keeps CLAIM_LANES from a lane whose lease ran out behind the same lock.
 */
export const EXTEND_LANE = `
with p as materialized (
  select j, set_config('lock_timeout', j->>'wait', true), set_config('synchronous_commit', 'off', true),
         pg_advisory_xact_lock_shared(hashtextextended(j->>'k', 0))
  from (select $1::text::jsonb j) x
)
update ob.lane l set due_at = ob.now() + (p.j->>'lease')::float8 * interval '1 ms'
from p where l.consumer = p.j->>'c' and l.key = p.j->>'key' and l.token = (p.j->>'k')::uuid
returning l.key`

/** Statements for handling a message on arrival, and for `once` in the caller's own transaction. */

/**
 * Marks messages as being handled by this transaction. In: `{ c, r retainMs, u untimed, restore, calm, untyped,
 * m: [{ s, i, t, k, b, h, e, at, os, oi }] }`, with `untyped` where the caller does not know the type. Raises 40001 if
 * retention has forgotten messages of this age meanwhile.
 * Out: those that are ours to run: new ones, and known ones that wait (an inline failure that its source redelivers,
 * a stored message that nobody holds), with their number in the journal and their attempts so far. The rest is for CLASSIFY.
 * With `restore`, the lock timeout that bounds the wait for a copy in flight is put back once the marks are made.
 * Where all are new, the usual case, nobody looks for waiting ones. `calm` is as in CLAIM: nothing that carries a token.
 */
export const MARK = `
with p as materialized (select $1::text::jsonb j),
m as materialized (
  select distinct on (x->>'s', x->>'i') j->>'c' consumer, x->>'s' source, x->>'i' id, x->>'t' type, x->>'k' key, x->>'b' body,
    x->>'h' hash, x->>'e' envelope, x->>'os' origin_source, x->>'oi' origin_id, (x->>'at')::timestamptz at
  from p, unnest(array(select jsonb_array_elements(j->'m') from p)) x order by x->>'s', x->>'i'
),
young as materialized (
  select m.* from p, m where ob.is_fresh(m.at, (j->>'r')::float8, j->>'u',
    (select f.sent_before from ob.forgotten f where f.consumer = j->>'c'))
),
ins as (
  insert into ob.message as t
    (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select consumer, source, id, type, key, body, decode(hash, 'hex'), envelope, origin_source, origin_id
  from young
  order by source collate "C", id collate "C"
  on conflict do nothing returning t.source, t.id, t.n
),
again as (
  delete from ob.work w using m
  where (select count(*) from ins) < (select count(*) from m)
    and w.consumer = m.consumer and w.source = m.source and w.id = m.id and w.lane is null
    and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()
      and (select (j->>'calm')::boolean is not true from p)))
    and not exists (select 1 from ins where ins.source = m.source and ins.id = m.id)
    and exists (select 1 from ob.message t where t.consumer = w.consumer and t.source = w.source and t.id = w.id
      and (t.hash is null or m.hash is null or t.hash = decode(m.hash, 'hex') or m.origin_id is not null
        and (t.origin_id, t.origin_source) is distinct from (m.origin_id, m.origin_source))
      and (t.type = m.type or (select (j->>'untyped')::boolean from p)))
  returning w.consumer, w.source, w.id, w.attempts
),
still_fresh as materialized (
  select case when exists (select 1 from ins) then ob.refuse_forgotten(j->>'c', (select min(at) from young)) end from p
),
ours as (
  select source, id, n, null::int attempts from ins
  union all
  select source, id, (select t.n from ob.message t where t.consumer = again.consumer and t.source = again.source
    and t.id = again.id), attempts from again
)
select ours.source, ours.id, ours.n::text, ours.attempts::text from ours
union all
select null, null, null, case when (select count(*) from ours) >= 0 and (j->>'restore')::boolean
  then set_config('lock_timeout', current_setting('oncebox.lock_timeout'), true) end from p, still_fresh`

/** Is a message young enough to be judged new? In: `{ c consumer, at, r retainMs, u untimed }`. */
export const IS_FRESH = `
with p as materialized (select $1::text::jsonb j)
select ob.is_fresh((j->>'at')::timestamptz, (j->>'r')::float8, j->>'u',
  (select f.sent_before from ob.forgotten f where f.consumer = j->>'c'))::text fresh from p`

/**
 * Settles inline messages: the last statement before COMMIT. In: `{ x, g, handled: [n, …] }`. The marks are the
 * settlement; this notes the time, and raises if the transaction is not the one we opened.
 */
export const SETTLE_INLINE = `
with p as materialized (select $1::text::jsonb j),
handled as (
  insert into ob.handled (n, at) select x::bigint, ob.now() from p, jsonb_array_elements_text(j->'handled') x
  on conflict (n) do update set at = excluded.at
)
select ob.close_transaction((j->>'x')::xid8, (j->>'g')::tid) from p`

/**
 * Takes back the marks of messages that did not run, with one look at the index for each: they are this transaction's own,
 * so nobody moves them, and a join planned on an empty table would read the whole journal. In: `{ c, drop: [[source, id], …] }`.
 */
export const DROP_MARKS = `
with p as materialized (select $1::text::jsonb j)
delete from ob.message m where m.ctid = any (array(
  select d.ctid from p, jsonb_array_elements(j->'drop') x cross join lateral (select m.ctid from ob.message m
    where m.consumer = j->>'c' and m.source = x->>0 and m.id = x->>1 limit 1) d))`

/**
 * Records an inline failure: the message, and work that waits for its source ('failed'), for the box, or for a person
 * ('dead'). In: `{ c, s, i, t, k, b, h, e envelope, at, os, oi, n, ms, p parked, reason, err, hist }`. Raises 40001 if retention
 * has forgotten messages of this age. No row back: another copy
 * handled it meanwhile, or holds it. What the box has stored it runs again itself: its sender was told so, and has
 * forgotten it.
 *
 * Work is inserted only where this statement inserted the message. A known one is updated in place: an upsert guarded by
 * a look at `work` would see a row that a copy is deleting as it settles, wait for it, and insert it afresh for a message
 * that is handled by then.
 */
export const FAIL_INLINE = `
with p as materialized (select $1::text::jsonb j),
ins as (
  insert into ob.message as t (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select j->>'c', j->>'s', j->>'i', j->>'t', j->>'k', j->>'b', decode(j->>'h', 'hex'), j->>'e', j->>'os', j->>'oi'
  from p on conflict do nothing returning 1
),
first as (
  insert into ob.work as w (consumer, source, id, due_at, attempts, parked, reason, error)
  select j->>'c', j->>'s', j->>'i',
    case when j->>'p' is not null then 'infinity' else ob.now() + (j->>'ms')::float8 * interval '1 ms' end,
    (j->>'n')::int, j->>'p', j->>'reason', j->>'err'
  from p where case when exists (select 1 from ins)
    then ob.refuse_forgotten(j->>'c', (j->>'at')::timestamptz) is not null else false end
  returning w.consumer, w.source, w.id, w.attempts
),
again as (
  update ob.work w set
    attempts = greatest(0, w.attempts + (j->>'n')::int), error = coalesce(j->>'err', w.error), token = null, suspect = false,
    parked = case when w.parked is null and j->>'p' = 'failed' then null else j->>'p' end, reason = j->>'reason',
    due_at = case when j->>'p' is null or w.parked is null and j->>'p' = 'failed'
                  then ob.now() + coalesce((j->>'ms')::float8, 0) * interval '1 ms' else 'infinity' end
  from p where not exists (select 1 from ins) and w.consumer = j->>'c' and w.source = j->>'s' and w.id = j->>'i'
    and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()))
  returning w.consumer, w.source, w.id, w.attempts
),
w as (select * from first union all select * from again),
a as (
  insert into ob.attempt (consumer, source, id, attempt, error)
  select w.consumer, w.source, w.id, w.attempts, j->>'err' from p, w where (j->>'hist')::boolean
)
select attempts::text from w`

/** Bounds every wait for a lock in this transaction. In: `[limit]`. */
export const LOCK_TIMEOUT = `select set_config('lock_timeout', $1::text::jsonb->>0, true)`

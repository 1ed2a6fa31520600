/**
 * Statements of a transaction that runs handlers: how it opens, how it settles, and how a failure is recorded.
 *
 * Lists of messages are looked up one by one, in a lateral subquery with a limit: as a join, the planner believes that
 * few rows carry a token and reads a consumer's whole backlog to find them, 50 ms for 20 000 messages.
 */

/**
 * The first statement of a transaction that runs handlers. In: `{ g group token, lock lock timeout or null, idle ms }`.
 * Out: the transaction's id. The row in open_group refuses every COMMIT until the settlement has deleted it. The old
 * lock timeout is kept in a setting of ours, for MARK to put back. A worker that freezes in the transaction would keep
 * its row locks for ever: the server ends a session that idles beyond every deadline (`idle`), unless it has its own limit.
 */
export const OPEN = `
with p as materialized (select $1::text::jsonb j),
g as (insert into ob.open_group select (j->>'g')::uuid from p returning 1)
select pg_current_xact_id()::text xid, (select count(*) from g)::text open,
  set_config('oncebox.lock_timeout', current_setting('lock_timeout'), true) was,
  case when j->>'lock' is not null then set_config('lock_timeout', j->>'lock', true) end,
  case when current_setting('idle_in_transaction_session_timeout') = '0'
    then set_config('idle_in_transaction_session_timeout', j->>'idle', true) end
from p`

/** Any answer, also an error, shows that the connection is alive. */
export const ALIVE = `select 1 where $1::text is not null`

/**
 * Settles claimed messages: the last statement before COMMIT. In: `{ c, k token, x xid, g group, d: [[source, id], …] }`.
 * Raises unless every message still carries our token (OB001) and the transaction is the one we opened (OB002): an
 * answer that JavaScript looked at after a pipelined COMMIT would come too late, and a zombie's writes would stay.
 */
export const SETTLE = `
with p as materialized (select $1::text::jsonb j),
d as (
  delete from ob.work w
  where w.token = (select (j->>'k')::uuid from p) and w.ctid = any (array(
    select x.ctid from p, jsonb_array_elements(j->'d') e cross join lateral (select w.ctid from ob.work w
      where w.consumer = p.j->>'c' and w.source = e->>0 and w.id = e->>1 limit 1) x))
  returning 1
),
g as (delete from ob.open_group o using p where o.token = (j->>'g')::uuid returning 1)
select case
  when pg_current_xact_id() <> (j->>'x')::xid8 or (select count(*) from g) <> 1
    then ob.refuse('OB002', 'the transaction is not the one that was opened')
  when (select count(*) from d) <> jsonb_array_length(j->'d') then ob.refuse('OB001', 'the claim was lost')
end from p`

/** Stores handlers' results, in the transaction of their settlement. In: `{ c, r: [[source, id, result], …] }`. */
export const STORE_RESULTS = `
with p as materialized (select $1::text::jsonb j),
r as materialized (
  select e->>0 source, e->>1 id, e->>2 result, x.ctid tid from p, jsonb_array_elements(j->'r') e
  cross join lateral (select m.ctid from ob.message m
    where m.consumer = p.j->>'c' and m.source = e->>0 and m.id = e->>1 limit 1) x
)
update ob.message m set result = r.result from r
where m.ctid = any (array(select tid from r)) and m.source = r.source and m.id = r.id`

/** Which of these messages still carry our token: after a COMMIT whose answer was lost, none means it committed. */
export const STILL_CLAIMED = `
with p as materialized (select $1::text::jsonb j)
select w.source, w.id from p, jsonb_array_elements(j->'d') e cross join lateral (select * from ob.work w
  where w.consumer = p.j->>'c' and w.source = e->>0 and w.id = e->>1 limit 1) w
where w.token = (p.j->>'k')::uuid or w.lane is not null`

/** What became of a transaction whose COMMIT got no answer: 'in progress', 'committed', 'aborted', or null if unknown. */
export const TRANSACTION_STATUS = `select pg_xact_status(($1::text::jsonb->>0)::xid8) status`

/**
 * Records failures, or releases claims. In: `{ c, k, f: [{ s, i, n attempts to add, ms delay, at time, p parked, r reason,
 * e error, h history }] }`. A message missing from the answer has lost its claim: somebody else decides its fate.
 */
export const FAIL = `
with p as materialized (select $1::text::jsonb j),
f as materialized (
  select x->>'s' source, x->>'i' id, (x->>'n')::int n, x->>'p' parked,
         coalesce((x->>'at')::timestamptz, ob.now() + (x->>'ms')::float8 * interval '1 ms') due,
         x->>'r' reason, x->>'e' error, coalesce((x->>'h')::boolean, false) history
  from p, jsonb_array_elements(j->'f') x order by x->>'s' collate "C", x->>'i' collate "C"
),
l as materialized (
  select w.ctid tid from p, f cross join lateral (select w.ctid from ob.work w
    where w.consumer = p.j->>'c' and w.source = f.source and w.id = f.id and w.token = (p.j->>'k')::uuid
    limit 1 for update) w
),
u as (
  update ob.work w set token = null, suspect = false, attempts = greatest(0, w.attempts + f.n),
    error = coalesce(f.error, w.error), parked = f.parked, reason = f.reason,
    due_at = case when f.parked is not null then 'infinity' else f.due end
  from f
  where w.ctid = any (array(select tid from l)) and w.source = f.source and w.id = f.id
  returning w.consumer, w.source, w.id, w.attempts, f.error, f.history
),
a as (
  insert into ob.attempt (consumer, source, id, attempt, error)
  select consumer, source, id, attempts, error from u where history and error is not null
)
select source, id, attempts::text from u`

/** Counts an attempt before a suspect runs. No row back: the claim was lost. */
export const COUNT_ATTEMPT = `
with p as materialized (select $1::text::jsonb j)
update ob.work w set attempts = w.attempts + 1
from p left join ob.lane l on l.consumer = p.j->>'c' and l.key = p.j->>'lane'
where w.consumer = p.j->>'c' and w.source = p.j->>'s' and w.id = p.j->>'i'
  and (w.token = (p.j->>'k')::uuid or (w.lane = l.key and l.token = (p.j->>'k')::uuid))
returning w.attempts::text`

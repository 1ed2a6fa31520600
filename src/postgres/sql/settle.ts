/**
 * Statements of a transaction that runs handlers: how it opens, how it settles, and how a failure is recorded.
 *
 * Lists of messages carry the consumer and the token in each element, and go through `unnest(array(…))`, which the
 * planner takes for ten rows. Otherwise it reads a consumer's whole backlog for the few rows with our token: 50 ms for
 * 20 000 messages.
 */

/**
 * The first statement of a transaction that runs handlers. In: `{ lock lock timeout or null, idle ms }`. Out, between
 * spaces: the transaction's id, the place of its guard in open_group, which is a row that refuses every COMMIT until the
 * settlement has deleted it, and settings that nobody reads (one column costs the client less than four). The old lock
 * timeout is kept in a setting of ours, for MARK to put back. A worker that freezes in the transaction would keep its row
 * locks for ever: the server ends a session that idles beyond every deadline (`idle`), unless it has its own limit.
 */
export const OPEN = `
insert into ob.open_group (token) values ('00000000-0000-0000-0000-000000000000')
returning concat_ws(' ', pg_current_xact_id(), ctid,
  case when current_setting('idle_in_transaction_session_timeout') = '0'
    then set_config('idle_in_transaction_session_timeout', $1::text::jsonb->>'idle', true) end,
  case when $1::text::jsonb->>'lock' is not null
    then set_config('oncebox.lock_timeout', current_setting('lock_timeout'), true)
      || set_config('lock_timeout', $1::text::jsonb->>'lock', true) end) opened`

/** Any answer, also an error, shows that the connection is alive. */
export const ALIVE = `select 1 where $1::text is not null`

/** May this session still do all that a run needs? Asked when one of its statements was denied. One row: `complete`. */
export const RIGHTS = `
select bool_and(has_table_privilege(name, privilege))::text complete
from unnest(array['ob.message', 'ob.work', 'ob.lane', 'ob.open_group', 'ob.outbox', 'ob.delivery']) tables(name),
  unnest(array['select', 'insert', 'update', 'delete']) privileges(privilege)
where $1::text is not null`

/**
 * Which server this is, as far as a restart goes: a crash of one of its processes does not change the answer, a new
 * postmaster does.
 */
export const SERVER = `select pg_postmaster_start_time()::text started where $1::text is not null`

/**
 * Settles claimed messages: the last statement before COMMIT. In: `{ c, k token, x xid, g guard, d: [[source, id, n], …] }`.
 * Raises unless every message still carries our token (OB001) and the transaction is the one we opened (OB002): an
 * answer that JavaScript looked at after a pipelined COMMIT would come too late, and a zombie's writes would stay.
 */
export const SETTLE = `
with p as materialized (select $1::text::jsonb j),
e as materialized (
  select j->>'c' consumer, x->>0 source, x->>1 id, (x->>2)::bigint n, (j->>'k')::uuid token
  from p, unnest(array(select jsonb_array_elements(j->'d') from p)) x
),
d as (
  delete from ob.work w using e
  where w.consumer = e.consumer and w.source = e.source and w.id = e.id and w.token = e.token returning e.n
),
handled as (
  insert into ob.handled (n, at) select n, ob.now() from d where n is not null
  on conflict (n) do update set at = excluded.at
)
select ob.close_transaction((j->>'x')::xid8, (j->>'g')::tid), case
  when (select count(*) from d) <> jsonb_array_length(j->'d') then ob.refuse('OB001', 'the claim was lost')
end from p`

/** The same for one message: `{ c, k, x, g, s source, i id, n }`. */
export const SETTLE_ONE = `select ob.settle_one($1::text::jsonb)`

/** Stores handlers' results, in the transaction of their settlement. In: `{ c, r: [[source, id, result], …] }`. */
export const STORE_RESULTS = `
with p as materialized (select $1::text::jsonb j),
e as materialized (
  select j->>'c' consumer, x->>0 source, x->>1 id, x->>2 result
  from p, unnest(array(select jsonb_array_elements(j->'r') from p)) x
)
update ob.message m set result = e.result from e
where m.consumer = e.consumer and m.source = e.source and m.id = e.id`

/** Which of these messages still carry our token: after a COMMIT whose answer was lost, none means it committed. */
export const STILL_CLAIMED = `
with p as materialized (select $1::text::jsonb j),
e as materialized (
  select j->>'c' consumer, x->>0 source, x->>1 id, (j->>'k')::uuid token
  from p, unnest(array(select jsonb_array_elements(j->'d') from p)) x
)
select w.source, w.id from e join ob.work w on w.consumer = e.consumer and w.source = e.source and w.id = e.id
where w.token = e.token or w.lane is not null`

/** What became of a transaction whose COMMIT got no answer: 'in progress', 'committed', 'aborted', or null if unknown. */
export const TRANSACTION_STATUS = `select pg_xact_status(($1::text::jsonb->>0)::xid8) status`

/**
 * Records failures, or releases claims. In: `{ c, k, f: [{ s, i, n attempts to add, total attempts to set instead, ms delay,
 * at time, p parked, r reason, e error, h history }] }`. A message missing from the answer has lost its claim: somebody else decides its fate.
 */
export const FAIL = `
with p as materialized (select $1::text::jsonb j),
f as materialized (
  select j->>'c' consumer, (j->>'k')::uuid token, x->>'s' source, x->>'i' id, (x->>'n')::int n,
         (x->>'total')::int total, x->>'p' parked,
         case when x->>'at' is not null then greatest((x->>'at')::timestamptz, ob.now())
              else ob.now() + (x->>'ms')::float8 * interval '1 ms' end due,
         x->>'r' reason, x->>'e' error, coalesce((x->>'h')::boolean, false) history
  from p, unnest(array(select jsonb_array_elements(j->'f') from p)) x
),
l as materialized (
  select w.source, w.id from f, ob.work w
  where w.consumer = f.consumer and w.source = f.source and w.id = f.id and w.token = f.token
  order by w.source, w.id for update of w
),
u as (
  update ob.work w set token = null, suspect = false, attempts = coalesce(f.total, greatest(0, w.attempts + f.n)),
    error = coalesce(f.error, w.error), parked = f.parked, reason = f.reason,
    due_at = case when f.parked is not null then 'infinity' else f.due end
  from f join l using (source, id)
  where w.consumer = f.consumer and w.source = f.source and w.id = f.id and w.token = f.token
  returning w.consumer, w.source, w.id, w.attempts, f.error, f.history
),
a as (
  insert into ob.attempt (consumer, source, id, attempt, error)
  select consumer, source, id, attempts, error from u where history and error is not null
)
select source, id, attempts::text from u`

/**
 * Counts an attempt before a suspect runs. In: `{ c, k token, s, i, lane, total }`, where `total` counts it: whoever holds
 * the message is the only one to count, so the statement may be repeated after a lost answer, and a release may put back
 * what was before without knowing whether it took effect. No row back: the claim was lost. The lane is locked first, as
 * everywhere: it carries the claim, and who waits for the message alone would count for a claim that has ended meanwhile.
 */
export const COUNT_ATTEMPT = `
with p as materialized (select $1::text::jsonb j),
held as materialized (
  select l.key from p, ob.lane l
  where l.consumer = j->>'c' and l.key = j->>'lane' and l.token = (j->>'k')::uuid for share of l
)
update ob.work w set attempts = (p.j->>'total')::int from p
where w.consumer = p.j->>'c' and w.source = p.j->>'s' and w.id = p.j->>'i'
  and (w.token = (p.j->>'k')::uuid or w.lane in (select key from held))
returning w.attempts::text`

/**
 * How many of a message's failed attempts found no handler for it. In: `{ c, s, i, attempts so far }`. One row: `missed`.
 * Only those since it was last retried or replayed, which counts from one again: there the history, which keeps all
 * attempts, does not go up, or is ahead of the count. Index: the primary key of `attempt`.
 */
export const MISSED_ATTEMPTS = `
with p as materialized (select $1::text::jsonb j),
history as materialized (
  select a.n, a.attempt, a.error, a.attempt <= lag(a.attempt) over (order by a.n) anew from p, ob.attempt a
  where a.consumer = j->>'c' and a.source = j->>'s' and a.id = j->>'i'
)
select count(*)::text missed from p, history h
where h.error::jsonb->>'code' = 'HANDLER_MISSING'
  and h.n >= (select coalesce(max(n) filter (where anew), 0) from history)
  and (select attempt from history order by n desc limit 1) <= (j->>'attempts')::int`

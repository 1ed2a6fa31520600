/** Statements of the effects journal. But for the read, none runs in a handler's transaction. */

/** What is on record for a message. In: `[consumer, source, id]`. */
export const READ_EFFECTS = `
with p as materialized (select $1::text::jsonb j)
select e.name, e.state, e.result from p, ob.effect e
where e.consumer = j->>0 and e.source = j->>1 and e.id = j->>2`

/**
 * Commits the intent to call. In: `{ c, s, i, k token, n name }`. Out: `held`, whether we still hold the message, and
 * `before`, what was on record: nothing, an intent (a call that may have happened), or an outcome.
 */
export const INTEND = `
with p as materialized (select $1::text::jsonb j),
mine as materialized (
  select 1 from p, ob.work w left join ob.lane l on l.consumer = w.consumer and l.key = w.lane
  where w.consumer = j->>'c' and w.source = j->>'s' and w.id = j->>'i'
    and (j->>'k')::uuid in (w.token, l.token)
),
before as materialized (
  select e.state, e.result from p, ob.effect e
  where e.consumer = j->>'c' and e.source = j->>'s' and e.id = j->>'i' and e.name = j->>'n'
),
ins as (
  insert into ob.effect as e (consumer, source, id, name, state)
  select j->>'c', j->>'s', j->>'i', j->>'n', 'intent' from p where exists (select 1 from mine)
  on conflict (consumer, source, id, name) do update set called_at = excluded.called_at where e.state = 'intent'
  returning 1
)
select (select count(*) from mine)::text held, (select count(*) from ins)::text intended,
  (select state from before) before, (select result from before) result`

/**
 * Records the outcome of a call. In: `{ c, s, i, n, r result }`. It stands whoever holds the message by now; one that
 * was parked because nobody knew the outcome runs again.
 */
export const RECORD_EFFECT = `
with p as materialized (select $1::text::jsonb j),
e as (
  update ob.effect e set state = 'done', result = j->>'r', done_at = ob.now() from p
  where e.consumer = j->>'c' and e.source = j->>'s' and e.id = j->>'i' and e.name = j->>'n' and e.state = 'intent'
  returning e.consumer, e.source, e.id
),
w as (
  update ob.work w set parked = null, reason = null, due_at = ob.now() from e
  where w.consumer = e.consumer and w.source = e.source and w.id = e.id
    and w.parked = 'quarantined' and w.reason = 'effect-unknown'
  returning w.consumer, w.lane
),
l as (
  insert into ob.lane as l (consumer, key, due_at)
  select consumer, lane, ob.now() from w where lane is not null group by consumer, lane order by consumer, lane
  on conflict (consumer, key) do update set blocked = false, dirty = true,
    due_at = case when l.token is null then excluded.due_at else l.due_at end
  returning 1
)
select (select count(*) from e)::text recorded, (select count(*) from w)::text released, (select count(*) from l)::text lanes`

/** Takes an intent back: the call certainly did not happen. In: `{ c, s, i, n }`. */
export const FORGET_EFFECT = `
with p as materialized (select $1::text::jsonb j)
delete from ob.effect e using p
where e.consumer = j->>'c' and e.source = j->>'s' and e.id = j->>'i' and e.name = j->>'n' and e.state = 'intent'`

/**
 * A person's answer for a parked message: it happened, with this result, or it did not. In: `{ c, i producer's id, s source
 * or null, n, happened, r }`. No row back: no such message waits for this answer.
 */
export const ANSWER_EFFECT = `
with p as materialized (select $1::text::jsonb j),
m as materialized (
  select w.consumer, w.source, w.id, w.lane from p, ob.work w
  join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
  join ob.effect e on e.consumer = w.consumer and e.source = w.source and e.id = w.id
  where w.consumer = j->>'c' and w.parked = 'quarantined' and w.reason = 'effect-unknown'
    and coalesce(m.origin_id, m.id) = j->>'i' and e.name = j->>'n' and e.state = 'intent'
    and (j->>'s' is null or coalesce(m.origin_source, m.source) = j->>'s')
  for update of w
),
yes as (
  update ob.effect e set state = 'done', result = j->>'r', done_at = ob.now() from p, m
  where (j->>'happened')::boolean
    and e.consumer = m.consumer and e.source = m.source and e.id = m.id and e.name = j->>'n' returning 1
),
no as (
  delete from ob.effect e using p, m
  where not (j->>'happened')::boolean
    and e.consumer = m.consumer and e.source = m.source and e.id = m.id and e.name = j->>'n' returning 1
),
w as (
  update ob.work w set parked = null, reason = null, due_at = ob.now() from m
  where w.consumer = m.consumer and w.source = m.source and w.id = m.id returning w.consumer, w.lane
),
l as (
  insert into ob.lane as l (consumer, key, due_at)
  select consumer, lane, ob.now() from w where lane is not null group by consumer, lane order by consumer, lane
  on conflict (consumer, key) do update set blocked = false, dirty = true,
    due_at = case when l.token is null then excluded.due_at else l.due_at end
  returning 1
),
a as (
  insert into ob.audit (action, detail) select 'answer', (j - 'r')::text from p where exists (select 1 from m)
)
select consumer, source, id from m`

/**
 * Takes an inline message into the box, claimed by us, so that its effects can be called with no transaction open and
 * no copy of it runs meanwhile. In: `{ c, s, i, t, k key, b, h, e, os, oi, token, lease, wait lock timeout }`. Out: the
 * attempts so far, whether it was `stored`: then its sender has forgotten it, and the box goes on with it whatever comes;
 * and whether it is `suspect`: somebody died holding it.
 * No row back: it is known and not ours to take. As in FAIL_INLINE, only a new message gets new work.
 */
export const ADOPT = `
with p as materialized (
  select j, set_config('lock_timeout', j->>'wait', true) from (select $1::text::jsonb j offset 0) input
),
ins as (
  insert into ob.message as t (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select j->>'c', j->>'s', j->>'i', j->>'t', j->>'k', j->>'b', decode(j->>'h', 'hex'), j->>'e', j->>'os', j->>'oi'
  from p on conflict do nothing returning 1
),
first as (
  insert into ob.work as w (consumer, source, id, due_at, token)
  select j->>'c', j->>'s', j->>'i', ob.now() + (j->>'lease')::float8 * interval '1 ms', (j->>'token')::uuid
  from p where exists (select 1 from ins)
  returning w.attempts, false stored, false suspect
),
was as materialized (
  select w.consumer, w.source, w.id, w.attempts, w.parked, w.token from p, ob.work w
  where not exists (select 1 from ins) and w.consumer = j->>'c' and w.source = j->>'s' and w.id = j->>'i'
    and w.lane is null and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()))
    and exists (select 1 from ob.message t where t.consumer = w.consumer and t.source = w.source and t.id = w.id
      and (t.hash is null or j->>'h' is null or t.hash = decode(j->>'h', 'hex') or j->>'oi' is not null
        and (t.origin_id, t.origin_source) is distinct from (j->>'oi', j->>'os')))
  for update of w
),
again as (
  update ob.work w set parked = null, due_at = ob.now() + (j->>'lease')::float8 * interval '1 ms',
    token = (j->>'token')::uuid, suspect = (was.token is not null)
  from p, was where w.consumer = was.consumer and w.source = was.source and w.id = was.id
  returning w.attempts, was.parked is null stored, w.suspect
)
select attempts::text, stored::text, suspect::text from (select * from first union all select * from again) w`

/** Statements of the effects journal. But for the read, none runs in a handler's transaction. */
import { AS_IT_CAME, isCopy, ofTheBox } from './rules.js'
import { statement } from '../statement.js'
import type { ArrivalRow, Horizon } from './inline.js'

/** Whose effect it is: the key of a message in its consumer's journal. */
export interface EffectSubject {
  readonly consumer: string
  readonly source: string
  readonly id: string
}

interface Resumed {
  /** The message was parked for want of this, and runs again. */
  readonly resumed: 'true' | 'false'
}

/** What is on record for a message. */
export const READ_EFFECTS = statement<
  EffectSubject,
  { name: string; state: 'intent' | 'done'; result: string | null }
>(`
with input as materialized (select $1::text::jsonb j)
select e.name, e.state, e.result from input, ob.effect e
where e.consumer = j->>'consumer' and e.source = j->>'source' and e.id = j->>'id'`)

/**
 * Commits the intent to call, and extends the lease that it is made under. `token` is the claim's, `call` is a token of this
 * call. Out: `before`, what was on record: null for nothing, 'intent' for a
 * call that may have happened, 'done' for an outcome, then with its `result`; and `called`, when the intent was made.
 * No row back: another worker holds the message.
 *
 * The row that carries the claim is locked first, so nobody takes the message over meanwhile, and `before` is what the
 * upsert found in its own row: a snapshot would not show what another call has just written. With `park` an intent that
 * is there stays its caller's, because nothing will be called for it. Indexes: the primary keys.
 */
export const INTEND = statement<
  EffectSubject & { name: string; token: string; call: string; leaseMs: number; park: boolean },
  { before: 'intent' | 'done' | null; result: string | null; called: string }
>(`
with input as materialized (select $1::text::jsonb j),
loose as (
  update ob.work w set due_at = ob.now() + (j->>'leaseMs')::float8 * interval '1 ms' from input
  where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id'
    and w.lane is null and w.parked is null and w.token = (j->>'token')::uuid
  returning 1
),
laned as (
  update ob.lane l set due_at = ob.now() + (j->>'leaseMs')::float8 * interval '1 ms' from input, ob.work w
  where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id' and w.parked is null
    and l.consumer = w.consumer and l.key = w.lane and l.token = (j->>'token')::uuid
  returning 1
),
intended as (
  insert into ob.effect as e (consumer, source, id, name, state, token)
  select j->>'consumer', j->>'source', j->>'id', j->>'name', 'intent', (j->>'call')::uuid from input
  where exists (select 1 from loose) or exists (select 1 from laned)
  on conflict (consumer, source, id, name) do update set
    token = case when e.state = 'done' or (select (j->>'park')::boolean from input) then e.token else excluded.token end,
    called_at = case when e.state = 'done' or (select (j->>'park')::boolean from input)
      or e.token = excluded.token then e.called_at else excluded.called_at end,
    calls = case when e.state = 'done' or (select (j->>'park')::boolean from input)
      or e.token = excluded.token then e.calls else e.calls + 1 end
  returning e.state, e.result, e.token, e.calls, e.called_at
)
select case when state = 'done' then 'done' when token = (j->>'call')::uuid and calls = 1 then null else 'intent' end before,
  result, to_json(called_at)#>>'{}' called
from input, intended`)

/**
 * Records the outcome of a call. Out: the `result` on record, which is the
 * first one. It stands whoever holds the message by now, and whatever became of the intent: a call that happened has
 * happened. A message that was parked because nobody knew the outcome runs again. No row back: retention has taken the
 * message.
 *
 * The work row is locked first: a worker that parks the message either comes before and is seen here, or comes after
 * and sees this (RESUME_RECORDED). So is the message: retention would delete it together with the effects that it sees,
 * and leave this one behind for ever. Indexes: the primary keys.
 */
export const RECORD_EFFECT = statement<
  EffectSubject & { name: string; result: string | null },
  Resumed & { result: string | null }
>(`
with input as materialized (select $1::text::jsonb j),
locked as materialized (
  select 1 from input, ob.work w
  where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id' for no key update of w
),
recorded as (
  insert into ob.effect as e (consumer, source, id, name, state, result, done_at)
  select m.consumer, m.source, m.id, j->>'name', 'done', j->>'result', ob.now() from input, ob.message m
  where (select count(*) from locked) >= 0
    and m.consumer = j->>'consumer' and m.source = j->>'source' and m.id = j->>'id'
  for key share of m
  on conflict (consumer, source, id, name) do update set state = 'done',
    result = case when e.state = 'done' then e.result else excluded.result end,
    done_at = coalesce(e.done_at, excluded.done_at)
  returning e.consumer, e.source, e.id, e.result
)
select result, ob.resume_parked(consumer, source, id)::text resumed from recorded`)

/**
 * Takes an intent back: the call certainly did not happen. `call` and `called` are as INTEND was given and gave them; where
 * its answer was lost, `called` is null, and the intent goes if nobody had called before. A message that was parked because
 * of it runs again. No row back: there is no such intent, by now it is another caller's, or an outcome is on record.
 *
 * The row that carries the claim is locked first, as by INTEND: one that still waits for it comes before, and must not commit
 * after nothing was found to take back. Indexes: the primary keys.
 */
export const FORGET_EFFECT = statement<EffectSubject & { name: string; call: string; called: string | null }, Resumed>(`
with input as materialized (select $1::text::jsonb j),
laned as materialized (
  select 1 from input, ob.work w join ob.lane l on l.consumer = w.consumer and l.key = w.lane
  where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id' for no key update of l
),
locked as materialized (
  select 1 from input, ob.work w
  where (select count(*) from laned) >= 0
    and w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id' for no key update of w
),
forgotten as (
  delete from ob.effect e using input
  where (select count(*) from locked) >= 0
    and e.consumer = j->>'consumer' and e.source = j->>'source' and e.id = j->>'id' and e.name = j->>'name'
    and e.state = 'intent' and e.token = (j->>'call')::uuid
    and case when j->>'called' is null then e.calls = 1 else e.called_at = (j->>'called')::timestamptz end
  returning e.consumer, e.source, e.id
)
select ob.resume_parked(consumer, source, id)::text resumed from forgotten`)

/**
 * Runs a message again whose outcome was recorded while it was being parked for want of it. No row back: the outcome is unknown still. Indexes: the primary keys.
 */
export const RESUME_RECORDED = statement<EffectSubject & { name: string }, Resumed>(`
with input as materialized (select $1::text::jsonb j)
select ob.resume_parked(e.consumer, e.source, e.id)::text resumed from input, ob.effect e
where e.consumer = j->>'consumer' and e.source = j->>'source' and e.id = j->>'id' and e.name = j->>'name'
  and e.state = 'done'`)

/**
 * A person's answer for a parked message: it happened, with this result, or it did not. `id` and `source` are the
 * producer's, `quoted` is the effect's name as its error has it, `by` says who answers, and `why`. Out: the sources of the
 * messages that wait for this answer, each with whether it was `answered`: of several sources none is, of one the message
 * that came first. No row back: no such message waits.
 *
 * A message waits for the answer if the effect is on record for it, or if its error names the effect: an older version
 * of the library may have deleted the intent. An outcome that is on record by now stands. Index: work_parked.
 */
export const ANSWER_EFFECT = statement<
  {
    consumer: string
    id: string
    source: string | null
    effect: string
    quoted: string
    happened: boolean
    result: string | null
    by?: string | undefined
    why?: string | undefined
  },
  { origin: string; answered: 'true' | 'false' }
>(`
with input as materialized (select $1::text::jsonb j),
waiting as materialized (
  select w.consumer, w.source, w.id, w.seq, coalesce(m.origin_source, m.source) origin from input, ob.work w
  join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
  where w.consumer = j->>'consumer' and w.parked = 'quarantined' and w.reason = 'effect-unknown'
    and coalesce(m.origin_id, m.id) = j->>'id'
    and (j->>'source' is null or coalesce(m.origin_source, m.source) = j->>'source')
    and (position(j->>'quoted' in w.error::jsonb->>'message') > 0 or exists (select 1 from ob.effect e
      where e.consumer = w.consumer and e.source = w.source and e.id = w.id and e.name = j->>'effect'
        and e.state = 'intent'))
  order by w.seq for update of w
),
chosen as materialized (
  select consumer, source, id from waiting where (select count(distinct origin) from waiting) = 1 order by seq limit 1
),
happened as (
  insert into ob.effect as e (consumer, source, id, name, state, result, done_at)
  select consumer, source, id, j->>'effect', 'done', j->>'result', ob.now() from input, chosen
  where (j->>'happened')::boolean
  on conflict (consumer, source, id, name) do update set state = 'done',
    result = case when e.state = 'done' then e.result else excluded.result end,
    done_at = coalesce(e.done_at, excluded.done_at)
),
not_happened as (
  delete from ob.effect e using input, chosen c
  where not (j->>'happened')::boolean and e.consumer = c.consumer and e.source = c.source and e.id = c.id
    and e.name = j->>'effect' and e.state = 'intent'
),
noted as (
  insert into ob.audit (action, detail, actor)
  select 'answer', jsonb_strip_nulls(jsonb_build_object('consumer', c.consumer, 'source', w.origin, 'id', j->>'id',
    'effect', j->>'effect', 'happened', (j->>'happened')::boolean, 'reason', j->>'why'))::text, j->>'by'
  from input, chosen c join waiting w using (consumer, source, id)
)
select w.origin, (c.id is not null and ob.resume_parked(c.consumer, c.source, c.id))::text answered
from waiting w left join chosen c using (consumer, source, id)`)

/**
 * Takes a message on arrival into the box, claimed by us, so that its effects can be called with no transaction open and
 * no copy of it runs meanwhile. The reason 'arrival' says that its source still has it: until it is settled, no copy of it
 * may be acknowledged. Raises 40001 if retention has forgotten messages of this age. Out: its number in the journal, the
 * attempts so far, whether it was `stored`: then its sender has forgotten it, and the box goes on with it whatever comes;
 * and whether it is `suspect`: somebody died holding it.
 * No row back: it is known and not ours to take; with `calm`, as in CLAIM, neither is what carries a token. As in FAIL_INLINE,
 * only a new message gets new work.
 */
export const ADOPT = statement<
  {
    consumer: string
    message: ArrivalRow
    token: string
    leaseMs: number
    lockTimeout: string
    reason: 'arrival' | null
    calm?: boolean
  },
  { n: string | null; attempts: string; stored: 'true' | 'false'; suspect: 'true' | 'false' }
>(`
with input as materialized (
  select j, j->'message' m, set_config('lock_timeout', j->>'lockTimeout', true)
  from (select $1::text::jsonb j offset 0) given
),
inserted as (
  insert into ob.message as t (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select j->>'consumer', m->>'s', m->>'i', m->>'t', m->>'k', m->>'b', decode(m->>'h', 'hex'), m->>'e', m->>'os', m->>'oi'
  from input on conflict do nothing returning t.n
),
first as (
  insert into ob.work as w (consumer, source, id, due_at, token, reason)
  select j->>'consumer', m->>'s', m->>'i', ob.now() + (j->>'leaseMs')::float8 * interval '1 ms', (j->>'token')::uuid,
    j->>'reason'
  from input where case when exists (select 1 from inserted)
    then ob.refuse_forgotten(j->>'consumer', (m->>'at')::timestamptz) is not null else false end
  returning w.attempts, false stored, false suspect
),
was as materialized (
  select w.consumer, w.source, w.id, w.attempts, w.token,
    ${ofTheBox('w')} stored
  from input, ob.work w
  where not exists (select 1 from inserted) and w.consumer = j->>'consumer' and w.source = m->>'s' and w.id = m->>'i'
    and w.lane is null and (w.parked = 'failed' or w.parked is null and (w.token is null
      or w.due_at <= ob.now() and (j->>'calm')::boolean is not true))
    and exists (select 1 from ob.message t where t.consumer = w.consumer and t.source = w.source and t.id = w.id
      and ${isCopy('t', AS_IT_CAME)} and t.type = m->>'t')
  for update of w
),
again as (
  update ob.work w set parked = null, due_at = ob.now() + (j->>'leaseMs')::float8 * interval '1 ms',
    token = (j->>'token')::uuid, suspect = (was.token is not null),
    reason = case when not was.stored then j->>'reason' end
  from input, was where w.consumer = was.consumer and w.source = was.source and w.id = was.id
  returning w.attempts, was.stored, w.suspect
)
select attempts::text, stored::text, suspect::text, coalesce((select n from inserted), (select t.n from input, ob.message t
  where t.consumer = j->>'consumer' and t.source = m->>'s' and t.id = m->>'i'))::text n
from (select * from first union all select * from again) w`)

/**
 * Takes the leading ones of these messages on arrival into the box that nobody knows, claimed by us, as ADOPT does with one.
 * Raises 40001 if retention has forgotten messages of this age meanwhile. Out: those that are ours. The first that is missing is
 * known, too old, or held by a copy in flight; the others behind it have to wait for it. The fingerprint is as for MARK. Index:
 * the primary key of `message`.
 */
export const ADOPT_NEW = statement<
  Horizon & {
    readonly messages: readonly ArrivalRow[]
    readonly token: string
    readonly leaseMs: number
    readonly lockTimeout: string
    readonly reason: 'arrival' | null
  },
  { source: string; id: string; n: string }
>(`
with input as materialized (
  select j, set_config('lock_timeout', j->>'lockTimeout', true) from (select $1::text::jsonb j offset 0) given
),
given as materialized (
  select ord, x->>'s' source, x->>'i' id, x->>'t' type, x->>'k' key, x->>'b' body, x->>'h' hash, x->>'e' envelope,
    x->>'os' origin_source, x->>'oi' origin_id, (x->>'at')::timestamptz at,
    ob.is_fresh((x->>'at')::timestamptz, (j->>'retainMs')::float8, j->>'untimed',
      (select f.sent_before from ob.forgotten f where f.consumer = j->>'consumer'))
    and not exists (select 1 from ob.message m
      where m.consumer = j->>'consumer' and m.source = x->>'s' and m.id = x->>'i' offset 0) new
  from input, jsonb_array_elements(j->'messages') with ordinality a(x, ord)
),
head as materialized (
  select * from given where ord < coalesce((select min(ord) from given where not new), (select count(*) + 1 from given))
),
inserted as (
  insert into ob.message as m
    (consumer, source, id, type, key, body, hash, unhashed, envelope, origin_source, origin_id)
  select j->>'consumer', source, id, type, key, body, decode(nullif(hash, ''), 'hex'), case when hash is null then true end,
    envelope, origin_source, origin_id
  from input, head order by source collate "C", id collate "C"
  on conflict do nothing returning m.source, m.id, m.n
),
claimed as (
  insert into ob.work (consumer, source, id, due_at, token, reason)
  select j->>'consumer', source, id, ob.now() + (j->>'leaseMs')::float8 * interval '1 ms', (j->>'token')::uuid, j->>'reason'
  from input, inserted
),
still_fresh as materialized (
  select ob.refuse_forgotten(j->>'consumer', (select min(at) from head)) from input where exists (select 1 from head)
)
select source, id, n::text from inserted where (select count(*) from still_fresh) >= 0`)

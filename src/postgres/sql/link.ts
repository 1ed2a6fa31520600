/** The statement of a link between two boxes of one database. `to_box.` stands for the schema of the receiving one. */
import type { LocalConsumer } from '../../local-consumer.js'
import { statement, type Json } from '../statement.js'
import { FREE, HELD_BACK } from './held-back.js'
import { COUNTED, FINISHED, type EventRow, type ReadInput } from './shards.js'
import { subscribed, wakeLanes } from './rules.js'

interface MoveInput extends ReadInput {
  readonly token: string
  /** How long to wait for a lock. */
  readonly wait: string
  /** Those of the receiving box. */
  readonly consumers: readonly LocalConsumer[]
}

export interface MoveAnswer {
  readonly moved: number
  /** As in COMPLETE. */
  readonly shared: readonly string[]
  /** Events that are not new to every consumer, too old, wanted by nobody, or by a consumer with a business key. */
  readonly rest: readonly EventRow[]
}

/**
 * Moves the next events of leased shards straight into the inbox of another box: READ_SHARDS, RECEIVE and COMPLETE in
 * one, so that an event is in one place or in the other. Out: one row. The rest goes the long way, which can judge it. Raises
 * 40001 if retention has forgotten messages of this age meanwhile; it has looked when `checked` is counted.
 *
 * The shard rows are locked and our token is on them, so nobody else moves events of their keys meanwhile, and within a
 * lane, locked before it is drawn, the sequence follows the order of sending. Shards without a rest are given back. Rows are
 * matched by grouping: the planner takes these lists for short, and would join them row by row. Indexes: delivery_live, and
 * the primary keys.
 */
export const MOVE = statement<MoveInput, { answer: Json<MoveAnswer> }>(`
with input as materialized (
  select given, set_config('lock_timeout', given->>'wait', true) from (select $1::text::jsonb given) x
),${HELD_BACK},
leased as materialized (
  select h.shard from input, ob.shard h
  where h.sink = given->>'sink' and h.token = (given->>'token')::uuid order by h.shard for update of h
),
next as materialized (
  select d.n, d.shard, d.attempts from input, leased
  cross join lateral (
    select d.n, d.shard,${COUNTED} attempts from ob.delivery d
    where d.sink = given->>'sink' and d.shard >= leased.shard and d.shard <= leased.shard
      and d.parked is null and not d.waiting and${FREE}
    order by d.shard, d.n limit (select (given->>'depth')::int from input)) d
  where (select it from open)
  order by d.n limit (select (given->>'limit')::int from input)
),
event as materialized (
  select o.*, coalesce(substring(envelope from '^{"time":"([^"]+)"')::timestamptz, created_at) at from (
    select next.shard, next.attempts, o.*, sum(size.it) over (order by next.n) - size.it before
    from next cross join lateral (select * from ob.outbox o where o.n = next.n limit 1) o
    cross join lateral (select octet_length(o.body) + octet_length(o.envelope) it) size) o
  where before < (select (given->>'bytes')::bigint from input)
),${subscribed('to_box')},
judged as materialized (
  select distinct on (e.n, s.consumer) e.*, s.consumer, s.ordered,
         not s.identity and to_box.is_fresh(e.at, s.retain_ms, s.untimed, s.sent_before) fresh
  from event e join subscribed s on s.type in (e.type, '*')
),
inserted as (
  insert into to_box.message as t (consumer, source, id, type, key, body, hash, envelope)
  select consumer, source, id, type, key, body, hash,
         case when envelope like '{"time":%' then envelope
              else '{"time":"' || to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '",'
                || substr(envelope, 2) end
  from judged where fresh
  order by consumer, source, id
  on conflict do nothing
  returning t.consumer, t.source, t.id, t.ctid place
),
still_fresh as materialized (
  select to_box.refuse_forgotten(consumer, min(at)) from judged
  where fresh and (select count(*) from inserted) > 0 group by consumer
),
added as materialized (
  select max(n) n, consumer, source, id, max(lane) lane, max(place) place
  from (select consumer, source, id, n, case when ordered then key end lane, 0 is_new, null::tid place from judged
        union all select consumer, source, id, null, null, 1, place from inserted) x
  group by consumer, source, id having sum(is_new) = 1
),
woken as (${wakeLanes('added', 'to_box')}
),
queued as (
  insert into to_box.work (consumer, source, id, seq, lane, due_at, journal_place)
  select consumer, source, id, nextval('to_box.seq'), lane, to_box.now(), place
  from (select * from added where (select count(*) from woken) >= 0 order by n) came
),
moved as materialized (
  select n from (select n, 1 due, 0 done from judged union all select n, 0, 1 from added) x
  group by n having sum(due) = sum(done)
),
rest as materialized (select e.* from event e where e.n not in (select n from moved)),
done as (
  delete from ob.delivery d where d.ctid = any (array(
    select d.ctid from input, moved cross join lateral (
      select d.ctid from ob.delivery d where d.n = moved.n and d.sink = given->>'sink' limit 1) d))
  returning d.n
),
over as materialized (
  select done.n, exists (select 1 from input, ob.delivery x where x.n = done.n and x.sink <> given->>'sink') shared
  from done
),
finished as (select n from over where not shared),${FINISHED},
given_back as (
  update ob.shard x set token = null, due_at = ob.now()
  from input, leased where x.sink = given->>'sink' and x.shard = leased.shard and x.shard not in (select shard from rest)
)
select jsonb_build_object(
  'moved', (select count(*) from done),
  'checked', (select count(*) from still_fresh),
  'shared', coalesce((select jsonb_agg(n::text) from over where shared), '[]'),
  'rest', coalesce((select jsonb_agg(jsonb_build_object('n', n::text, 'shard', shard, 'attempts', attempts,
      'source', source, 'id', id, 'type', type, 'key', key, 'body', body, 'envelope', envelope,
      'created', (extract(epoch from created_at) * 1000.0)::bigint::text) order by n) from rest), '[]')
)::text answer`)

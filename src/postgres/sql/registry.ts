/** Statements that tell other processes about consumers. */
import type { LocalConsumer } from '../../local-consumer.js'
import { statement, type Flag, type Json } from '../statement.js'
import { waitingSinks } from './rules.js'

/** How long the word of a process holds that it is not heard of again: several times that it renews it. */
const WORD_HOLDS = `ob.now() + interval '5 minutes'`

const SAID = `
said as materialized (
  select x->>'name' name, (x->>'ordered')::boolean ordered, (x->>'retainMs')::bigint retain_ms, x->>'untimed' untimed,
    x->'types' types, (x->>'identity')::boolean identity, x->>'declared' declared
  from jsonb_array_elements($1::text::jsonb) x
)`

/** What is registered of a consumer. */
export interface ConsumerRow {
  readonly name: string
  readonly ordered: Flag
  readonly retain_ms: string
  readonly untimed: 'accept' | 'quarantine'
  readonly identity: Flag
  /** Who wrote it last, and when, as JSON for people. */
  readonly declared: Json<object> | null
}

/**
 * Registers consumers and their subscriptions; `declared` says who and when. Out: what was registered before, of those that
 * were.
 *
 * The last process to say so decides, but for two options, which make a promise to receivers: a consumer is ordered, and
 * has a business key, as long as the word of one process holds.
 */
export const REGISTER = statement<readonly (LocalConsumer & { declared: string })[], ConsumerRow>(`
with${SAID},
before as materialized (
  select o.name, o.ordered::text, o.retain_ms::text, o.untimed, o.identity::text, o.declared
  from said join ob.consumer o on o.name = said.name
),
written as (
  insert into ob.consumer as o
    (name, ordered, retain_ms, untimed, identity, ordered_until, identity_until, declared)
  select name, ordered, retain_ms, untimed, identity, case when ordered then ${WORD_HOLDS} end,
    case when identity then ${WORD_HOLDS} end, declared
  from said order by name
  on conflict (name) do update set
    ordered = excluded.ordered or o.ordered and coalesce(o.ordered_until > ob.now(), false),
    ordered_until = coalesce(excluded.ordered_until, o.ordered_until),
    identity = excluded.identity or o.identity and coalesce(o.identity_until > ob.now(), false),
    identity_until = coalesce(excluded.identity_until, o.identity_until),
    retain_ms = excluded.retain_ms, untimed = excluded.untimed, declared = excluded.declared
  returning o.name
),
done as (select count(*) from written),
subscribed as (
  insert into ob.subscription as s (consumer, type)
  select said.name, t.type from done, said, jsonb_array_elements_text(said.types) t(type) order by said.name, t.type
  on conflict do nothing
)
select * from before`)

/** Renews the word of this process, and lets go of what no process says any more. A consumer that was removed stays so. */
export const RENEW = statement<readonly LocalConsumer[]>(`
with${SAID},
locked as materialized (
  select o.name from said join ob.consumer o on o.name = said.name order by o.name for no key update of o
)
update ob.consumer o set
  ordered = said.ordered or o.ordered and coalesce(o.ordered_until > ob.now(), false),
  ordered_until = case when said.ordered then ${WORD_HOLDS} else o.ordered_until end,
  identity = said.identity or o.identity and coalesce(o.identity_until > ob.now(), false),
  identity_until = case when said.identity then ${WORD_HOLDS} else o.identity_until end
from said join locked using (name) where o.name = said.name`)

/** Of a row `q` of the quarantine: nobody wanted it until now, and it can still be released. */
const RELEASABLE = `q.reason = 'unrouted' and q.discarded is null and q.body is not null and q.id is not null
    and q.n > (select after from input)`

/**
 * The numbers of messages that no consumer wanted until now, oldest first; `*` stands for every type. Out: 50 000 at most. Without bodies: there may be more than fit into memory. Indexes: quarantine_type, and the
 * primary key where every type is wanted.
 */
export const UNROUTED = statement<{ types: readonly string[]; after: string }, { n: string }>(`
with input as materialized (
  select given->'types' types, (given->>'after')::bigint after from (select $1::text::jsonb given) x
),
wanted as materialized (select distinct jsonb_array_elements_text(types) collate "C" as type from input),
every as materialized (select exists (select 1 from wanted where type = '*') type)
select found.n::text from (
  (select q.n from ob.quarantine q where (select type from every) and ${RELEASABLE} order by q.n limit 50000)
  union all
  (select q.n from wanted cross join lateral (
    select q.n from ob.quarantine q where not (select type from every) and q.type = wanted.type and ${RELEASABLE}) q
   order by q.n limit 50000)
) found order by found.n`)

/**
 * Which consumers there are. In: the names that are asked for. Out: every registered one, and of those asked for the ones
 * that have messages, or did. No row back for a name: nobody has heard of it. Indexes: message_received,
 * quarantine_reason; as `exists` the planner would hash both tables.
 */
export const KNOWN_CONSUMERS = statement<readonly string[], { name: string }>(`
with input as materialized (select $1::text::jsonb names)
select name from ob.consumer
union
select x.name collate "C" from input, jsonb_array_elements_text(names) x(name)
where (select 1 from ob.message m where m.consumer = x.name collate "C" order by m.received_at limit 1) is not null
  or (select 1 from ob.quarantine q where q.consumer = x.name collate "C" order by q.reason limit 1) is not null`)

export interface Waiting {
  readonly consumer: string
  /** The age of the oldest message that is due and that nobody holds; null if there is none. */
  readonly dueMs: number | null
  /** Some worker, anywhere, holds messages of it. */
  readonly held: boolean
}

export interface WaitingEvents {
  readonly sink: string
  /** The age of the oldest event that is due; null if there is none. */
  readonly dueMs: number | null
  /** Some relay, anywhere, publishes to it right now. */
  readonly held: boolean
}

interface HealthRow {
  /** The age in ms of the oldest message that is due or held, of any consumer that is not paused, or of the oldest event. */
  readonly lag: string
  /** False on a standby, and on a read-only server. */
  readonly writable: Flag
  /** The role may write what a worker writes. */
  readonly allowed: Flag
  readonly waiting: Json<readonly Waiting[]>
  readonly sinks: Json<readonly WaitingEvents[]>
}

/**
 * What `health()` asks. In: the names of the local consumers and sinks, which may not be registered yet. Out: one row.
 *
 * A message that is tried again is as old as its delay is over. What is held is looked for among what falls due next, a
 * thousand of each kind: a lease ends among the delays of retries. Where none is found, and a message has been due for long
 * enough to say that nobody runs its consumer, it is looked for among a hundred thousand. Indexes: work_due, lane_due,
 * work_lane, delivery_live, delivery_waiting. Events of a sink that is not registered (any more) count too: its name is
 * found by jumping along these indexes. So do events that have fallen due while no relay runs.
 */
export const HEALTH = statement<{ consumers: readonly string[]; sinks: readonly string[] }, HealthRow>(`
with recursive input as materialized (
  select given->'consumers' names, given->'sinks' sinks from (select $1::text::jsonb given) x
),
awake as materialized (
  select name from ob.consumer where not paused
  union
  select x.name collate "C" from input, jsonb_array_elements_text(names) x(name)
  where not exists (select 1 from ob.consumer known where known.name = x.name collate "C")
),
waiting as materialized (
  select awake.name, due.ms due_ms, held.ms held_ms, case when held.some then true when due.ms < 5000.0 then false
    else due.ms is not null and (
      exists (select 1 from (
        select token from ob.work where consumer = awake.name and lane is null and parked is null and due_at > ob.now()
        order by due_at limit 100000) ahead where ahead.token is not null)
      or exists (select 1 from (
        select token from ob.lane where consumer = awake.name and due_at > ob.now() and due_at < 'infinity'
        order by due_at limit 100000) ahead where ahead.token is not null)) end held
  from awake
  left join lateral (
    select max(extract(epoch from ob.now() - case when oldest.token is not null and oldest.attempts = 0
      then m.received_at else greatest(m.received_at, oldest.due_at) end) * 1000.0) ms
    from (
      (select source, id, due_at, token, attempts from ob.work
       where consumer = awake.name and lane is null and parked is null and due_at <= ob.now() order by due_at limit 1)
      union all
      (select head.source, head.id, l.due_at, l.token, head.attempts from ob.lane l cross join lateral (
         select w.source, w.id, w.attempts from ob.work w
         where w.consumer = l.consumer and w.lane = l.key and w.parked is null order by w.seq limit 1) head
       where l.consumer = awake.name and l.due_at <= ob.now() and l.due_at < 'infinity' order by l.due_at limit 1)
    ) oldest cross join lateral (select m.received_at from ob.message m
      where m.consumer = awake.name and m.source = oldest.source and m.id = oldest.id limit 1) m
  ) due on true
  left join lateral (
    select true some, max(extract(epoch from ob.now() - m.received_at) * 1000.0) filter (where oldest.attempts = 0) ms
    from (
      (select leased.source, leased.id, leased.attempts from (
         select source, id, seq, token, attempts from ob.work
         where consumer = awake.name and lane is null and parked is null and due_at > ob.now()
         order by due_at limit 1000) leased
       where leased.token is not null order by leased.attempts > 0, leased.seq limit 1)
      union all
      (select head.source, head.id, head.attempts from (
         select consumer, key, token from ob.lane
         where consumer = awake.name and due_at > ob.now() and due_at < 'infinity' order by due_at limit 1000) leased
       cross join lateral (select w.source, w.id, w.seq, w.attempts from ob.work w
         where w.consumer = leased.consumer and w.lane = leased.key and w.parked is null order by w.seq limit 1) head
       where leased.token is not null order by head.attempts > 0, head.seq limit 1)
    ) oldest cross join lateral (select m.received_at from ob.message m
      where m.consumer = awake.name and m.source = oldest.source and m.id = oldest.id limit 1) m
    having count(*) > 0
  ) held on true
),
${waitingSinks()},
part as (
  select sink, shard, token is not null and due_at > ob.now() held from ob.shard
  union all
  select x.name collate "C", g.shard, false
  from (select jsonb_array_elements_text(sinks) from input union select name from live where name is not null) x(name),
    generate_series(0, 31) g(shard)
  where not exists (select 1 from ob.shard known where known.sink = x.name collate "C")
),
head as (
  select part.sink, part.held, d.due_at from part left join lateral (
    select d.due_at from ob.delivery d
    where d.sink = part.sink and d.shard = part.shard and d.parked is null and not d.waiting order by d.n limit 1) d on true
  union all
  select sleepers.name, false, d.due_at from sleepers cross join lateral (
    select d.due_at from ob.delivery d
    where d.sink = sleepers.name and d.parked is null and d.waiting and d.due_at <= ob.now() order by d.due_at limit 1) d
),
event as materialized (
  select sink, max(extract(epoch from ob.now() - due_at) * 1000.0) ms, bool_or(held) held from head group by sink
)
select coalesce(greatest(0, (select max(ms) from event), (select max(greatest(due_ms, held_ms)) from waiting)), 0)::bigint::text lag,
  (not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off')::text writable,
  (has_table_privilege('ob.message', 'insert') and has_table_privilege('ob.work', 'insert'))::text allowed,
  (select coalesce(jsonb_agg(jsonb_build_object('consumer', name, 'dueMs', due_ms::bigint, 'held', held)), '[]')
   from waiting)::text waiting,
  (select coalesce(jsonb_agg(jsonb_build_object('sink', sink, 'dueMs', ms::bigint, 'held', held)), '[]') from event)::text sinks`)

/** Statements that lease messages to a worker, one by one (no order). For ordered consumers see lanes.ts. */
import { statement } from '../statement.js'
import { journaledOf, LOOK } from './rules.js'
import type { ClaimOf, Key } from './settle.js'

/** What a claim takes of what is due. */
export interface Due {
  /** Nothing that has fallen due since: a drain would go on for ever with what asks to be run again at once. */
  readonly until: string | undefined
  /** Nothing that carries a token, even if its lease is over: after an outage its holder, if it lives, gives it back. */
  readonly calm: boolean
}

/** A message that was claimed, with its lane if it has one. */
export interface ClaimedRow {
  readonly source: string
  readonly id: string
  readonly n: string | null
  readonly lane?: string
  readonly attempts: string
  readonly suspect: 'true' | 'false'
  readonly type: string
  readonly key: string | null
  readonly body: string
  readonly envelope: string | null
  readonly origin_source: string | null
  readonly origin_id: string | null
  /** When it was received, in ms since 1970. */
  readonly received: string
}

/**
 * Claims due messages. Out: the claimed messages, and what there was to `look` at; the first ones whose bodies come to no more
 * than `bytes` and the body that passes them: a sender of large ones must not choose how much a worker reads at once.
 *
 * A claim counts nothing: it only notes that a token was still there (`suspect`), which means that the last worker
 * died. `ctid = any(array(…))` fixes the plan: as a join, a generic plan would hash a million rows. `low` skips the
 * dead index entries that a pinned xmin keeps alive; it is left out now and then, so late commits are found. What changed
 * since the statement began is locked but not updated, so only what `claimed` has is ours. Bodies are summed up in the order
 * in which `due` found them, and rows matched by their number: sorting and joining by key costs 1 µs for each message.
 *
 * Nobody waits for a claim to reach the disk: a server that crashes forgets it together with everything that was done
 * under it, because the log keeps its order. What is settled under a claim is as durable as ever.
 */
export const CLAIM = statement<
  ClaimOf & Due & { leaseMs: number; limit: number; bytes: number; low: string | undefined },
  ClaimedRow & { look: string }
>(`
with input as materialized (select $1::text::jsonb j, set_config('synchronous_commit', 'off', true)),
due as materialized (
  select ctid place, journal_place, consumer, source, id, seq, due_at, attempts, token is not null suspect,
         clock_timestamp() seen
  from ob.work
  where consumer = (select j->>'consumer' from input) and lane is null and parked is null
    and due_at <= ob.now() and due_at >= (select coalesce((j->>'low')::timestamptz, '-infinity') from input)
    and due_at <= (select coalesce((j->>'until')::timestamptz, 'infinity') from input)
    and (token is null or (select (j->>'calm')::boolean is not true from input))
    and not exists (select 1 from ob.consumer o where o.name = (select j->>'consumer' from input) and o.paused)
  order by due_at, seq limit (select (j->>'limit')::int from input) for update skip locked
),
found as materialized (
  select due.place, due.seq, due.attempts, due.suspect, m.source, m.id, m.n, m.type, m.key, m.body, m.envelope,
         m.origin_source, m.origin_id, m.received_at,
         sum(octet_length(m.body)) over (rows unbounded preceding) - octet_length(m.body) before
  from due ${journaledOf('due')}
),
claimed as (
  update ob.work w set suspect = (w.token is not null), reason = null,
    token = (select (j->>'token')::uuid from input),
    due_at = ob.now() + (select (j->>'leaseMs')::float8 * interval '1 ms' from input)
  where w.ctid = any (array(select place from found where before < (select (j->>'bytes')::bigint from input)))
  returning w.seq
)
select source, id, n::text, attempts::text, suspect::text, type, key, body, envelope,
       origin_source, origin_id,
       (extract(epoch from received_at) * 1000.0)::bigint::text received,
       (select${LOOK} from due) look
from found where seq in (select seq from claimed)
order by seq`)

/**
 * What a claim holds whose answer was lost: its messages, with the reason 'arrival' if their source still has them, and its
 * lanes, by its token. It was asked for less than `sinceMs` ago, which says when its lease ends: at the latest a lease from
 * now, and `skewMs` for a clock that was ahead of this one. Further on, a backlog of delayed messages would be read in vain.
 * No row back: the claim came to nothing, or is given back. Indexes: work_due, lane_due.
 */
export const CLAIMED = statement<
  ClaimOf & { leaseMs: number; sinceMs: number; skewMs: number },
  | { source: string; id: string; reason: string | null; lane: null }
  | { source: null; id: null; reason: null; lane: string }
>(`
with input as materialized (select $1::text::jsonb j),
sought as materialized (
  select j->>'consumer' consumer, (j->>'token')::uuid token,
         ob.now() + ((j->>'leaseMs')::float8 - (j->>'sinceMs')::float8) * interval '1 ms' earliest,
         ob.now() + ((j->>'leaseMs')::float8 + (j->>'skewMs')::float8) * interval '1 ms' latest
  from input
)
select w.source, w.id, w.reason, null lane from ob.work w
where w.consumer = (select consumer from sought) and w.lane is null and w.parked is null
  and w.due_at >= (select earliest from sought) and w.due_at <= (select latest from sought)
  and w.token = (select token from sought)
union all
select null, null, null, l.key from ob.lane l
where l.consumer = (select consumer from sought) and l.due_at < 'infinity'
  and l.due_at >= (select earliest from sought) and l.due_at <= (select latest from sought)
  and l.token = (select token from sought)`)

/**
 * Heartbeat: extends the lease of a claim. Out: the messages that still carry our token, by their position, and whether
 * they were extended: what is locked is skipped, and is EXTEND_ONE's to wait for. A message missing from the answer was
 * lost, or is settled. Like a claim it does not wait for the disk: a server that crashes forgets one heartbeat of three.
 */
export const EXTEND = statement<
  ClaimOf & { leaseMs: number; messages: readonly Key[] },
  { at: string; extended: 'true' | 'false' }
>(`
with input as materialized (select $1::text::jsonb j, set_config('synchronous_commit', 'off', true)),
asked as materialized (
  select ord, j->>'consumer' consumer, x->>0 source, x->>1 id, (j->>'token')::uuid token
  from input, unnest(array(select jsonb_array_elements(j->'messages') from input)) with ordinality a(x, ord)
),
extended as (
  update ob.work w set due_at = ob.now() + (select (j->>'leaseMs')::float8 * interval '1 ms' from input)
  where w.ctid = any (array(
    select w.ctid from asked, ob.work w
    where w.consumer = asked.consumer and w.source = asked.source and w.id = asked.id and w.token = asked.token
    for update of w skip locked))
  returning w.source, w.id
)
select (asked.ord - 1)::text "at",
  exists (select 1 from extended e where e.source = w.source and e.id = w.id)::text extended
from asked join ob.work w
  on w.consumer = asked.consumer and w.source = asked.source and w.id = asked.id and w.token = asked.token`)

/**
 * Heartbeat of a message whose row is locked: waits for its turn, one for each statement, so that nothing can deadlock.
 * No row back: it was lost, or is settled.
 */
export const EXTEND_ONE = statement<
  ClaimOf & { leaseMs: number; source: string; id: string; waitMs: number },
  { id: string }
>(`
with input as materialized (
  select j, set_config('lock_timeout', j->>'waitMs', true), set_config('synchronous_commit', 'off', true)
  from (select $1::text::jsonb j) x
)
update ob.work w set due_at = ob.now() + (j->>'leaseMs')::float8 * interval '1 ms'
from input where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id'
  and w.token = (j->>'token')::uuid
returning w.id`)

/** The time by which a round of a drain takes what is due, in microseconds. */
export const DRAIN_UNTIL = statement<null, { until: string }>(
  `select to_json(ob.now())#>>'{}' until where $1::text is not null`,
)

export interface NextDue {
  /** Milliseconds from now; null if nothing waits. */
  readonly ms: string | null
  /** In ms since 1970. */
  readonly now: string
  /** How long it took to find, in ms. */
  readonly took: string
}

/**
 * When the next message of a consumer falls due, of those from `low` on, and of lanes from `lanesLow` on, where they are given. No
 * row: it is paused. Indexes: work_due, lane_due.
 */
export const NEXT_DUE = statement<{ consumer: string; low?: string; lanesLow?: string }, NextDue>(`
with input as materialized (
  select j->>'consumer' consumer, coalesce((j->>'low')::timestamptz, '-infinity') low,
         coalesce((j->>'lanesLow')::timestamptz, '-infinity') lanes_low
  from (select $1::text::jsonb j) x
),
next as materialized (
  select least(
    (select due_at from ob.work where consumer = (select consumer from input) and lane is null and parked is null
      and due_at >= (select low from input) order by due_at limit 1),
    (select due_at from ob.lane where consumer = (select consumer from input) and due_at < 'infinity'
      and due_at >= (select lanes_low from input) order by due_at limit 1)) due
)
select case when next.due is not null
  then greatest(0, extract(epoch from next.due - ob.now()) * 1000.0)::bigint::text end ms,
  (extract(epoch from ob.now()) * 1000.0)::bigint::text now,
  (extract(epoch from clock_timestamp() - statement_timestamp()) * 1000.0)::bigint::text took
from input, next where not exists (select 1 from ob.consumer o where o.name = input.consumer and o.paused)`)

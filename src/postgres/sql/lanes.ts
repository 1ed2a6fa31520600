/** Statements for strict order per key: workers claim lanes, not messages. */
import { statement } from '../statement.js'
import type { ClaimedRow, Due } from './claim.js'
import { journaledOf, LOOK } from './rules.js'
import type { ClaimOf, FailureRow, NumberedKey, OpenedBy } from './settle.js'

/**
 * Claims due lanes. Out: their keys, whether their last worker died, and what there was to `look` at. Like
 * CLAIM it does not wait for the disk, takes nothing that has fallen due after `until`, nor, if `calm`, carries a token, and
 * skips with `low` the dead index entries that a pinned xmin keeps alive. A lane whose holder is waiting to extend it
 * (EXTEND_LANE) is left to that holder. No row back: nothing is due, or others hold it. Index: lane_due.
 */
export const CLAIM_LANES = statement<
  ClaimOf & Due & { leaseMs: number; limit: number; low: string | undefined },
  { key: string; suspect: 'true' | 'false'; look: string }
>(`
with input as materialized (select $1::text::jsonb j, set_config('synchronous_commit', 'off', true)),
due as materialized (
  select ctid place, due_at, clock_timestamp() seen from ob.lane
  where consumer = (select j->>'consumer' from input) and due_at <= ob.now() and due_at < 'infinity'
    and due_at >= (select coalesce((j->>'low')::timestamptz, '-infinity') from input)
    and due_at <= (select coalesce((j->>'until')::timestamptz, 'infinity') from input)
    and not exists (select 1 from ob.consumer o where o.name = (select j->>'consumer' from input) and o.paused)
    and (token is null or (select (j->>'calm')::boolean is not true from input)
      and pg_try_advisory_xact_lock(hashtextextended(token::text, 0)))
  order by due_at limit (select (j->>'limit')::int from input) for update skip locked
)
update ob.lane l set suspect = (l.token is not null), token = (select (j->>'token')::uuid from input), dirty = false,
  due_at = ob.now() + (select (j->>'leaseMs')::float8 * interval '1 ms' from input)
where l.ctid = any (array(select place from due))
returning l.key, l.suspect::text,
  (select${LOOK} from due) look`)

/**
 * Reads the messages of claimed lanes, oldest first, at most `depth` of each, and of all of them so many as CLAIM would for
 * `bytes`, the heads of the lanes before what is behind them. `more` says that another message is behind this one, `full`
 * that bytes ran out, so that any lane may have more. A statement of its own: the snapshot of the claim could still show
 * messages that the previous holder settled. No row back: the lanes are empty. Index: work_lane.
 */
export const READ_LANES = statement<
  { consumer: string; lanes: readonly string[]; depth: number; bytes: number },
  ClaimedRow & { lane: string; more: 'true' | 'false'; full: 'true' | 'false' }
>(`
with input as materialized (select $1::text::jsonb j),
found as (
  select w.lane, w.seq, w.attempts, w.depth, w.more, m.*, octet_length(m.body) length
  from input, jsonb_array_elements_text(j->'lanes') lanes(key)
  cross join lateral (
    select w.*, row_number() over (order by w.seq) depth, lead(w.seq) over (order by w.seq) is not null more
    from ob.work w where w.consumer = j->>'consumer' and w.lane = lanes.key and w.parked is null
    order by w.seq limit (select (j->>'depth')::int from input)) w
  ${journaledOf('w')}
),
counted as (
  select found.*, sum(length) over (order by depth, lane) - length before, sum(length) over () total from found
)
select source, id, n::text, lane, attempts::text, 'false' suspect, type, key, body, envelope,
       origin_source, origin_id,
       (extract(epoch from received_at) * 1000.0)::bigint::text received, more::text more,
       (total >= (j->>'bytes')::bigint)::text "full"
from counted, input where before < (j->>'bytes')::bigint
order by lane, seq`)

/**
 * Settles messages and the lanes they came from, together: lanes that are given back, which may hold more than was read,
 * and lanes to keep, with messages still to run. Raises unless every lane still carries our token. A lane that got new
 * messages meanwhile (`dirty`) falls due at once. `(… in …) is true` is looked up in a hash: as a join, each message would be
 * compared with every lane, which took longer than all the rest. Indexes: the primary keys of `lane` and `work`.
 */
export const SETTLE_LANES = statement<
  ClaimOf &
    OpenedBy & {
      done: readonly NumberedKey[]
      release: readonly (readonly [key: string, more: boolean])[]
      keep: readonly string[]
    }
>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, (j->>'token')::uuid token, x->>0 key, (x->>1)::boolean more
  from input, unnest(array(select jsonb_array_elements(j->'release') from input)
    || array(select jsonb_build_array(jsonb_array_elements(j->'keep')) from input)) x
),
locked as materialized (
  select l.key from given, ob.lane l
  where l.consumer = given.consumer and l.key = given.key and l.token = given.token
  order by l.key for update of l
),
released as (
  update ob.lane l set token = null, suspect = false, dirty = false,
    due_at = case when l.dirty or given.more then ob.now() else 'infinity' end
  from given join locked using (key)
  where l.consumer = given.consumer and l.key = given.key and l.token = given.token and given.more is not null
  returning 1
),
handling as materialized (
  select j->>'consumer' consumer, x->>0 source, x->>1 id, (x->>2)::bigint n
  from input, unnest(array(select jsonb_array_elements(j->'done') from input)) x
),
deleted as (
  delete from ob.work w using handling h
  where w.consumer = h.consumer and w.source = h.source and w.id = h.id
    and (w.lane in (select key from locked)) is true
  returning h.n
),
handled as (
  insert into ob.handled (n, at) select n, ob.now() from deleted where n is not null
  on conflict (n) do update set at = excluded.at
)
select ob.close_transaction((j->>'xid')::xid8, (j->>'guard')::tid), case
  when (select count(*) from released) <> jsonb_array_length(j->'release')
    or (select count(*) from locked) <> jsonb_array_length(j->'release') + jsonb_array_length(j->'keep')
    or (select count(*) from deleted) <> jsonb_array_length(j->'done')
    then ob.refuse('OB001', 'the claim was lost')
end from input`)

/**
 * Gives lanes back without settling anything. The delay of a lane is in ms; null means at once if anything arrived, else
 * when something does. `undo` has messages whose attempt was counted, with what it was before. Lanes missing from the
 * answer were lost.
 */
export const RELEASE_LANES = statement<
  ClaimOf & {
    release: readonly (readonly [key: string, delayMs: number | null])[]
    undo: readonly (readonly [source: string, id: string, attempts: number])[]
  },
  { key: string }
>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, (j->>'token')::uuid token, x->>0 key, (x->>1)::float8 ms
  from input, unnest(array(select jsonb_array_elements(j->'release') from input)) x
),
locked as materialized (
  select l.key from given, ob.lane l
  where l.consumer = given.consumer and l.key = given.key and l.token = given.token order by l.key for update of l
),
undone as (
  update ob.work w set attempts = (x->>2)::int
  from input, unnest(array(select jsonb_array_elements(j->'undo') from input)) x
  where w.consumer = j->>'consumer' and w.source = x->>0 and w.id = x->>1 and w.lane in (select key from locked)
)
update ob.lane l set token = null, suspect = false, dirty = false,
  due_at = case when given.ms is not null then ob.now() + given.ms * interval '1 ms'
                when l.dirty then ob.now() else 'infinity' end
from given join locked using (key)
where l.consumer = given.consumer and l.key = given.key and l.token = given.token
returning l.key`)

/**
 * Records the failure of a lane's first message and gives the lane back: delayed, blocked behind a dead message, or,
 * where dead messages are skipped, due at once. No row back: the lane was lost.
 */
export const FAIL_LANE = statement<
  ClaimOf & FailureRow & { key: string; block: boolean },
  { source: string; id: string; attempts: string }
>(`
with input as materialized (select $1::text::jsonb j),
locked as materialized (
  select l.key from input, ob.lane l
  where l.consumer = j->>'consumer' and l.key = j->>'key' and l.token = (j->>'token')::uuid for update of l
),
failed as (
  update ob.work w set attempts = greatest(0, w.attempts + (j->>'attempts')::int),
    error = coalesce(j->>'error', w.error), parked = j->>'parked', reason = j->>'reason',
    fingerprint = case when j->>'error' is null then w.fingerprint else j->>'fingerprint' end,
    failed_at = case when j->>'error' is null then w.failed_at else ob.now() end,
    due_at = case when j->>'parked' is not null then 'infinity' else w.due_at end
  from input, locked
  where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id' and w.lane = locked.key
  returning w.consumer, w.source, w.id, w.attempts
),
released as (
  update ob.lane l set token = null, suspect = false, dirty = false, blocked = (j->>'block')::boolean,
    due_at = case when (j->>'block')::boolean then 'infinity'
                  else greatest((j->>'at')::timestamptz, ob.now() + (j->>'delayMs')::float8 * interval '1 ms') end
  from input, locked, failed
  where l.consumer = j->>'consumer' and l.key = locked.key and l.token = (j->>'token')::uuid
  returning 1
),
noted as (
  insert into ob.attempt (consumer, source, id, attempt, error, ms, worker)
  select failed.consumer, failed.source, failed.id, failed.attempts, j->>'error', (j->>'ms')::float8, j->>'worker' from input, failed, released
  where (j->>'history')::boolean and j->>'error' is not null
)
select failed.source, failed.id, failed.attempts::text from failed, released`)

/**
 * Heartbeat of lanes. Out: the lanes that still carry our token, and whether they were extended: what is locked is skipped,
 * and is EXTEND_LANE's to wait for. A lane missing from the answer was lost, or is settled. Like a claim it does not wait
 * for the disk: a server that crashes forgets one heartbeat of three.
 */
export const EXTEND_LANES = statement<
  ClaimOf & { leaseMs: number; lanes: readonly string[] },
  { key: string; extended: 'true' | 'false' }
>(`
with input as materialized (select $1::text::jsonb j, set_config('synchronous_commit', 'off', true)),
asked as materialized (
  select j->>'consumer' consumer, (j->>'token')::uuid token, x key
  from input, unnest(array(select jsonb_array_elements_text(j->'lanes') from input)) x
),
extended as (
  update ob.lane l set due_at = ob.now() + (select (j->>'leaseMs')::float8 * interval '1 ms' from input)
  where l.ctid = any (array(
    select l.ctid from asked, ob.lane l
    where l.consumer = asked.consumer and l.key = asked.key and l.token = asked.token for update of l skip locked))
  returning l.key
)
select l.key, exists (select 1 from extended where extended.key = l.key)::text extended
from asked join ob.lane l on l.consumer = asked.consumer and l.key = asked.key and l.token = asked.token`)

/**
 * Heartbeat of a lane that receivers keep locked: waits for its turn. One lane for each statement, so that no other lane
 * is held up meanwhile and nothing can deadlock. No row back: it was lost, or is settled. While it waits, its advisory
 * lock keeps CLAIM_LANES from a lane whose lease ran out behind the same lock.
 */
export const EXTEND_LANE = statement<ClaimOf & { leaseMs: number; key: string; waitMs: number }, { key: string }>(`
with input as materialized (
  select j, set_config('lock_timeout', j->>'waitMs', true), set_config('synchronous_commit', 'off', true),
         pg_advisory_xact_lock_shared(hashtextextended(j->>'token', 0))
  from (select $1::text::jsonb j) x
)
update ob.lane l set due_at = ob.now() + (j->>'leaseMs')::float8 * interval '1 ms'
from input where l.consumer = j->>'consumer' and l.key = j->>'key' and l.token = (j->>'token')::uuid
returning l.key`)

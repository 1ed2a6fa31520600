/** Statements of the front door. */
import type { QuarantineReason } from '../../message.js'
import { statement, type Flag, type Json } from '../statement.js'
import type { ReceiveParam } from './receive-param.js'
import { isCopy, ofTheBox, same, STATE, subscribed, wakeLanes, type MessageKey } from './rules.js'

export interface ReceiveAnswer {
  /** The consumers of each type. */
  readonly targets: Readonly<Record<string, readonly string[]>>
  /** What was not stored, by position (from 1) and consumer. All the rest is. */
  readonly rest: readonly (readonly [position: number, consumer: string])[]
  /** Of these, what is too old to be stored. */
  readonly old: readonly (readonly [position: number, consumer: string])[]
  /** Of these, what has a time in the future, which counts as none. */
  readonly ahead: readonly (readonly [position: number, consumer: string])[]
}

/**
 * Stores a batch for every subscribed consumer: the journal row, the lane if the consumer is ordered, the work row. Out: one
 * row.
 *
 * Rows are inserted in the order of their key, or two batches that share ids would deadlock. The sequence number is
 * drawn after the lane is locked, so within a lane it follows the order of commits: counting the lanes locks them all.
 * Places of messages follow the order in which they were inserted. Nothing is joined where counts show that all is new: the planner takes what an insert returns for one row, and would
 * compare each of a thousand messages with each of a thousand lanes. Bodies are cut out where they are inserted, and kept
 * out of all that is sorted: work_mem holds few of them. Where the server's encoding has changed their length (EUC_JP does so to one
 * character), they are split instead.
 * Raises 40001 if retention has forgotten messages of this age meanwhile, and OB003 with the name of a consumer that has
 * a business key which this process cannot compute. It has looked when `checked` is counted.
 */
export const RECEIVE = statement<ReceiveParam, { answer: Json<ReceiveAnswer> }>(`
with input as materialized (
  select given, octet_length(convert_to(head, 'UTF8')) + 2 start, string_to_array(given->>'bounds', ' ')::int[] bounds,
         set_config('lock_timeout', given->>'wait', true)
  from (select head, head::jsonb given from (select split_part($1::text, chr(30), 1) head offset 0) x offset 0) x
),
written as materialized (
  select bytes, octet_length(bytes) = start - 2 + bounds[cardinality(bounds)] exact
  from input, (select convert_to($1::text, 'UTF8') bytes offset 0) x
),
split as materialized (select string_to_array($1::text, chr(30)) parts),
message as materialized (
  select ord, m.id collate "C" id, coalesce(m.source, given->>'source') collate "C" source,
         coalesce(m.type, given->>'type') collate "C" type, m.key collate "C" key, start + m.begins begins,
         m.ends - m.begins - 1 size, m.hash, m.envelope, m.at::timestamptz at, m.rare
  from input, rows from (unnest(bounds), unnest(bounds[2:]), jsonb_array_elements_text(given->'ids'),
    jsonb_array_elements_text(given->'sources'), jsonb_array_elements_text(given->'types'),
    jsonb_array_elements_text(given->'keys'), jsonb_array_elements_text(given->'hashes'),
    jsonb_array_elements_text(given->'envelopes'), jsonb_array_elements_text(given->'times'),
    jsonb_array_elements(given->'rare'))
    with ordinality m(begins, ends, id, source, type, key, hash, envelope, at, rare, ord)
  where m.ends is not null
),${subscribed()},
target as materialized (
  select distinct on (m.type, s.consumer) m.type, s.*
  from (select kind type from input, jsonb_array_elements_text(given->'kinds') kind) m join (
    select consumer, ordered, retain_ms, untimed, sent_before, guessed, type wanted from subscribed) s
    on s.wanted in (m.type, '*')
  where (select given->'only' = 'null'::jsonb or given->'only' @> to_jsonb(s.consumer) from input)
    and (s.consumer, m.type) not in (select x->>0, x->>1 from input, jsonb_array_elements(given->'not') x)
),
judged as materialized (
  select m.ord, t.consumer, case when m.rare->'ids'->>t.consumer is null then m.source else '' end source,
         coalesce(m.rare->'ids'->>t.consumer, m.id) id, case when t.ordered then coalesce(m.rare->>'lane', m.key) end lane,
         case when m.rare->>'force' is distinct from 'person' then m.at end at,
         case when m.rare->>'force' = 'person' then true
              when m.rare->>'force' is not null
                and not ob.is_fresh((m.rare->>'force')::timestamptz, t.retain_ms, 'accept', null) then false
              else ob.is_fresh(m.at, t.retain_ms, t.untimed, t.sent_before) end fresh
  from message m join target t on t.type = m.type and case when t.guessed then ob.refuse('OB003', t.consumer) else true end
  where m.rare->'unfit' is null or not m.rare->'unfit' @> to_jsonb(t.consumer)
),
fresh as materialized (
  select distinct on (consumer, source, id) ord, consumer, source, id, lane, at
  from judged where fresh order by consumer, source, id, ord
),
inserted as (
  insert into ob.message as t
    (consumer, source, id, type, key, body, hash, unhashed, envelope, origin_source, origin_id)
  select consumer, source, id, type, key,
         case when (select exact from written) then convert_from(substr((select bytes from written), begins, size), 'UTF8')
              else (select parts[ord + 1] from split) end, decode(nullif(hash, ''), 'hex'),
         case when hash is null then true end, envelope, origin_source, origin_id
  from (
    select m.ord::int ord, f.consumer, f.source, f.id, m.type, m.key, m.begins, m.size, m.hash, m.envelope,
           case when f.id is distinct from m.id or f.source <> m.source then m.source end origin_source,
           case when f.id is distinct from m.id or f.source <> m.source then m.id end origin_id
    from fresh f join message m using (ord)
    order by f.consumer, f.source, f.id offset 0) new
  on conflict do nothing
  returning t.consumer, t.source, t.id, t.ctid place
),
counted as materialized (
  select (select count(*) from judged) judged, (select count(*) from fresh) fresh, (select count(*) from inserted) inserted
),
added as materialized (
  select ord, consumer, source, id, lane, at, (array(select place from inserted))[row_number() over ()] place
  from fresh where (select inserted = fresh from counted)
  union all
  select fresh.ord, consumer, source, id, fresh.lane, fresh.at, inserted.place
  from inserted join fresh using (consumer, source, id) where (select inserted <> fresh from counted)
),
still_fresh as materialized (select ob.refuse_forgotten(consumer, min(at)) from added group by consumer),
woken as (${wakeLanes('added')}
),
queued as (
  insert into ob.work (consumer, source, id, seq, lane, due_at, journal_place)
  select consumer, source, id, nextval('ob.seq'), lane, ob.now(), place
  from (select * from added where lane is null or (select count(*) from woken) >= 0 order by ord) came
)
select jsonb_build_object(
  'checked', (select count(*) from still_fresh),
  'targets', coalesce((select jsonb_object_agg(type, consumers) from (
      select type, jsonb_agg(consumer order by consumer) consumers from target group by type) t), '{}'),
  'rest', case when (select inserted = judged from counted) then '[]' else
      coalesce((select jsonb_agg(jsonb_build_array(j.ord, j.consumer)) from judged j
        where not exists (select 1 from added where added.ord = j.ord and added.consumer = j.consumer)), '[]') end,
  'old', coalesce((select jsonb_agg(jsonb_build_array(ord, consumer)) from judged where not fresh), '[]'),
  'ahead', coalesce((select jsonb_agg(jsonb_build_array(ord, consumer)) from judged where not fresh and at > ob.now()), '[]')
)::text answer`)

/**
 * The same for one message with nothing rare about it, by a function of the schema: to set up a statement for a thousand takes three
 * times as long as to store one.
 */
export const RECEIVE_ONE = statement<ReceiveParam, { answer: Json<ReceiveAnswer> }>(
  `select ob.receive_one($1::text) answer`,
)

/** What is known of a message for a consumer. */
export interface KnownRow {
  /** Its position in the question. */
  readonly at: string
  /** Of the same type. */
  readonly same: Flag
  /** If neither its fingerprint nor its text is that of the one that is asked about: the caller compares what both say. */
  readonly body: string | null
  /** With the body. */
  readonly key: string | null
  readonly envelope: string | null
  /** `arriving`: it runs on arrival, and its source still has it. */
  readonly state: 'handled' | 'pending' | 'processing' | 'arriving' | 'failed' | 'dead' | 'discarded' | 'quarantined'
  readonly result: string | null
  readonly reason: QuarantineReason | null
  readonly error: string | null
  /** Commits wait for a standby, see CONFIRM. */
  readonly synchronous: Flag
  /** How long ago it was received, and how long its consumer remembers messages, in ms; null if it is not registered. */
  readonly age: string
  readonly retain: string | null
}

/**
 * The key, the fingerprint, and the body as it is. The producer's id and source are there only where `id` is a business key, which has the type
 * in it: two messages about one fact may differ, one message may not. The type is missing if the caller does not know it; a message
 * that was recorded as handled may have an empty one.
 */
export type Question = readonly [
  ...MessageKey,
  hash: string | null,
  body?: string | null,
  originId?: string | null,
  originSource?: string | null,
  type?: string | undefined,
]

/** What tells a copy in a question `x`. */
const ASKED = { hash: 'x->>3', body: 'x->>4', reworded: 'false', originId: 'x->>5', originSource: 'x->>6' }

/**
 * What became of messages that are known already. Always a statement of its own: inside the statement that waited for
 * a conflicting row, that row is still invisible. Out: one row for each that exists. Index: the primary keys.
 */
export const CLASSIFY = statement<readonly Question[], KnownRow>(`
select (asked.ord - 1)::text "at", m.result,
       (x->>7 is null or m.type in (x->>7, ''))::text same,
       case when not copy then m.body end body, case when not copy then m.key end key,
       case when not copy then m.envelope end envelope,
       case when ${ofTheBox('w')} or judged.state not in ('processing', 'pending') then judged.state
         when judged.state = 'processing' then 'arriving' else 'failed' end state,
       w.reason, w.error, (current_setting('synchronous_standby_names') <> '')::text synchronous,
       (extract(epoch from ob.now() - m.received_at) * 1000.0)::bigint::text age, o.retain_ms::text retain
from jsonb_array_elements($1::text::jsonb) with ordinality asked(x, ord)
cross join lateral (select * from ob.message m
  where m.consumer = x->>0 and m.source = x->>1 and m.id = x->>2 limit 1) m
left join ob.work w on ${same('w', 'm')}
left join ob.lane l on l.consumer = w.consumer and l.key = w.lane
left join ob.consumer o on o.name = m.consumer
cross join lateral (select ${STATE} state, coalesce(${isCopy('m', ASKED)}, false) copy) judged`)

/**
 * A commit that writes next to nothing, and waits for the synchronous standbys like every other: when it is answered, all
 * that was committed before is there too. The row of a known message may not be, if the wait of its own commit was
 * cancelled. Where no standby is waited for there is nothing to write. The answer does not matter.
 */
export const CONFIRM = statement<string>(`
select pg_logical_emit_message(true, 'oncebox', $1::text)::text
where current_setting('synchronous_standby_names') <> ''`)

const WAITS_FOR_SOURCE = `(w.parked = 'failed' or w.parked is null and w.reason = 'arrival' and w.due_at <= ob.now())`

/**
 * Hands what waits for its source over to the box: failures on arrival, and what a worker died of there. No row back: it is
 * not waiting any more.
 */
export const UNPARK_FAILED = statement<readonly MessageKey[], { consumer: string; source: string; id: string }>(`
with locked as materialized (
  select w.consumer, w.source, w.id from jsonb_array_elements($1::text::jsonb) x
  join ob.work w on w.consumer = x->>0 and w.source = x->>1 and w.id = x->>2
  where ${WAITS_FOR_SOURCE} order by w.consumer, w.source, w.id for update of w
)
update ob.work w set parked = null, reason = null, due_at = ob.now() from locked
where ${same('w', 'locked')} and ${WAITS_FOR_SOURCE}
returning w.consumer, w.source, w.id`)

interface OthersInput {
  readonly types: readonly string[]
  readonly not: readonly (readonly [consumer: string, type: string])[]
  /** Consumers that run now and have no business key here. */
  readonly keyless: readonly string[]
  /** Consumers that run messages with a key now, and keep no order here. */
  readonly unordered: readonly string[]
}

/**
 * Consumers of these types, beyond those that run now. With `guessed`: one of `keyless` that has a business key in another
 * process. With `ordered`: one of `unordered` that keeps the order of keys by the word of another process.
 */
export const OTHER_CONSUMERS = statement<OthersInput, { consumer: string; guessed: Flag; ordered: Flag }>(`
with input as materialized (select $1::text::jsonb given)
select distinct s.consumer, 'false' guessed, 'false' ordered
from input, jsonb_array_elements_text(given->'types') t(type) join ob.subscription s on s.type in (t.type, '*')
where (s.consumer, t.type) not in (select x->>0, x->>1 from jsonb_array_elements(given->'not') x)
union all
select o.name, 'true', 'false' from input, jsonb_array_elements_text(given->'keyless') k(name)
join ob.consumer o on o.name = k.name
where o.identity
union all
select o.name, 'false', 'true' from input, jsonb_array_elements_text(given->'unordered') u(name)
join ob.consumer o on o.name = u.name
where o.ordered`)

/**
 * Wakes the workers of other processes. Sent after the commit: inside a transaction it would serialise commits. It is a
 * transaction as well, and goes out when that is over: it waits for no disk.
 */
export const NOTIFY = statement<readonly [channel: string]>(`
select set_config('synchronous_commit', 'off', true), pg_notify($1::text::jsonb->>0, '')`)

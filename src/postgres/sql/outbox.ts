/** Statements by which events are written. What publishes them is in shards.ts, who wants them in sinks.ts. */
import { statement } from '../statement.js'

interface SendInput {
  readonly source: string
  /** The local sinks, which count until they are registered; `types` null for all. */
  readonly sinks: readonly { readonly name: string; readonly types: readonly string[] | null }[]
  readonly events: readonly SentRow[]
}

/** An event. In letters, since there may be thousands in a parameter, and each pays for its names. */
export interface SentRow {
  /** id */
  readonly i: string
  /** type */
  readonly t: string
  /** key */
  readonly k: string | undefined
  /** shard */
  readonly g: number | undefined
  /** body */
  readonly b: string
  /** hash: the fingerprint, in hex */
  readonly h: string | undefined
  /** envelope */
  readonly e: string
  /** When to publish it. */
  readonly at: string | undefined
}

/**
 * Writes events in the caller's transaction, with a delivery for each sink that wants them. The same id twice is a no-op: no
 * second delivery either.
 *
 * Events of one key get their number here, so they are published in the order of their statements as long as their
 * transactions exclude each other. An event without a key goes to any shard.
 *
 * The snapshot may be older than the sinks there are: that of a REPEATABLE READ transaction, or of a statement that waited for
 * an id. Such events are left to ASSIGN, which judges by the sinks of its own time. The numbers are drawn before the version is
 * looked at, and whoever removes a sink counts the version before it looks at the last number: so what is written for a
 * sink that is gone has a number that the removal knows.
 */
export const SEND = statement<SendInput>(`
with input as materialized (select $1::text::jsonb given),
event as materialized (
  select ord, x->>'i' id, x->>'t' type, x->>'k' key, (x->>'g')::int shard, x->>'b' body, x->>'h' hash, x->>'e' envelope,
         (x->>'at')::timestamptz at
  from input, jsonb_array_elements(given->'events') with ordinality a(x, ord)
),
written as (
  insert into ob.outbox as o (source, id, type, key, body, hash, envelope)
  select (select given->>'source' from input), id, type, key, body, decode(hash, 'hex'), envelope from event order by ord
  on conflict (source, id) do nothing
  returning o.n, o.id, o.type
),
stale as materialized (
  select 1 from ob.sink_set s where case when (select count(*) from written) >= 0
    then s.version is distinct from pg_sequence_last_value('ob.sink_version') end
),
sink as materialized (
  select name, types from ob.sink where not exists (select 1 from stale)
  union all
  select '', null where exists (select 1 from stale)
  union all
  select x->>'name', case when jsonb_typeof(x->'types') = 'array' then array(select jsonb_array_elements_text(x->'types')) end
  from input, jsonb_array_elements(given->'sinks') x
  where not exists (select 1 from ob.sink k where k.name = x->>'name')
)
insert into ob.delivery (n, sink, shard, key, due_at, waiting)
select w.n, coalesce(wanting.name, ''), coalesce(e.shard, (w.n % 32::bigint)::int), e.key, greatest(e.at, ob.now()),
       coalesce(wanting.name, '') <> '' and coalesce(e.at > ob.now(), false)
from written w join event e using (id)
left join lateral (
  select distinct sink.name from sink where sink.types is null or w.type = any (sink.types)) wanting on true
order by w.n`)

/** Everything that was sent and is still there, in order. For tests. */
export const SENT = statement<null, SentEvent>(`
select source, id, type, key, body, envelope, (extract(epoch from created_at) * 1000.0)::bigint::text received
from ob.outbox where $1::text is not null order by n`)

export interface SentEvent {
  readonly source: string
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly body: string
  readonly envelope: string
  readonly received: string
}

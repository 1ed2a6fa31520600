/** Statements that put messages in quarantine, once each. How they leave it is in bulk.ts. */
import { statement } from '../statement.js'

interface Input {
  readonly messages: readonly QuarantineRow[]
  /** Where the account of their source has a limit; `size` is that of all of them, in bytes. */
  readonly limit: QuarantineLimit | undefined
}

export interface QuarantineLimit {
  readonly account: string
  readonly rows: number
  readonly bytes: number
  readonly size: number
}

export interface QuarantineRow {
  /** Empty for nobody. */
  readonly consumer: string
  readonly source: string
  readonly id: string | undefined
  readonly type: string
  readonly key: string | undefined
  readonly reason: string
  readonly detail: string
  readonly body: string | undefined
  /** In base64. */
  readonly bytes: string | undefined
  /** Tells it from others under its id, in hex. */
  readonly hash: string
  /** By which copies of it are told once it is released, in hex; empty if nothing is compared. Undefined: by all of its data. */
  readonly fingerprint: string | undefined
  /** The hash without the type, where that is in it. */
  readonly untyped?: string
  readonly envelope: string | null | undefined
  readonly account: string | undefined
  readonly keepMs: number | undefined
  /** Of nobody's: the consumers that it is meant for, undefined for all. */
  readonly meant: readonly string[] | undefined
}

/**
 * A message that was added, or, with a limit, one row more: `used`, the share of it that is used; above 1 nothing was added.
 * A message missing from the answer was there already.
 */
export type QuarantineAnswer = AddedRow | { readonly used: string }

export interface AddedRow {
  readonly used: null
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly reason: string
  readonly type: string
  readonly hash: string
}

const INPUT = `
with input as materialized (select $1::text::jsonb given)`

const ALL = `
message as materialized (
  select x, ord from input, jsonb_array_elements(given->'messages') with ordinality a(x, ord)
)`

/** A row `q` of the quarantine with the key of a message `x`, but for the hash. What has no id has the empty one. */
const SAME_ID = `q.consumer = x->>'consumer' and q.source = x->>'source' and q.id = coalesce(x->>'id', '')
    and q.reason = x->>'reason'`

/**
 * How full the account of their source would be with those that are not there yet, 0 where nothing is counted. Above 1
 * nothing is inserted. The account is locked before it is judged.
 */
const ROOM = `
fresh as materialized (
  select count(*) messages from input, message
  where given->'limit' is not null and not exists (
    select 1 from ob.quarantine q where ${SAME_ID} and q.hash = decode(x->>'hash', 'hex'))
),
room as materialized (
  select case when most is null then 0 else ob.quarantine_used(most->>'account', (most->>'rows')::float8,
    (most->>'bytes')::float8, messages, case when messages > 0 then (most->>'size')::float8 else 0 end) end used
  from (select messages, given->'limit' most from input, fresh) judged
)`

/** In the order of their key, or two batches that share ids would deadlock; numbered as they came, to be released so. */
const ROWS = `
  select number, x->>'consumer', x->>'source', coalesce(x->>'id', ''), x->>'type', x->>'key', x->>'reason', x->>'detail',
    x->>'body', decode(x->>'bytes', 'base64'), decode(x->>'hash', 'hex'), x->>'envelope', x->>'account',
    ob.now() + (x->>'keepMs')::float8 * interval '1 ms', decode(x->>'fingerprint', 'hex'),
    case when jsonb_typeof(x->'meant') = 'array' then array(select jsonb_array_elements_text(x->'meant')) end
  from (
    select x, ord, nextval((select pg_get_serial_sequence('ob.quarantine', 'n')::regclass)) number
    from (select x, ord from message order by ord) came
  ) numbered
  where (select used from room) <= 1::float8
  order by x->>'consumer' collate "C", x->>'source' collate "C", x->>'id' collate "C", x->>'reason', x->>'hash', ord`

const INSERT = `
added as (
  insert into ob.quarantine as q (n, consumer, source, id, type, key, reason, detail, body, bytes, hash, envelope, via,
    expires_at, fingerprint, meant)
  overriding system value${ROWS}
  on conflict (consumer, source, id, reason, hash) where id is not null`

const ANSWER = `
  returning q.consumer, q.source, q.id, q.reason, q.type, encode(q.hash, 'hex') hash
)
select added.*, null used from added
union all select null, null, null, null, null, null, used::text from room where used > 0::float8`

/** One that is there already is meant for those of both then. */
const WIDEN = ` do update set
    meant = case when excluded.meant is not null then array(select distinct unnest(q.meant || excluded.meant) order by 1) end
    where q.meant is not null and (excluded.meant is null or not q.meant @> excluded.meant)`

/** Puts messages of consumers in quarantine. Index: quarantine_once. */
export const QUARANTINE = statement<Input, QuarantineAnswer>(`${INPUT},${ALL},${ROOM},${INSERT} do nothing${ANSWER}`)

/** Puts messages in quarantine that are nobody's. Out: as for QUARANTINE, and those that are meant for more than before. */
export const QUARANTINE_OF_NOBODY = statement<Input, QuarantineAnswer>(`${INPUT},
message as materialized (
  select distinct on (x->>'source', x->>'id', x->>'reason', x->>'hash') x, ord
  from input, jsonb_array_elements(given->'messages') with ordinality a(x, ord)
  order by x->>'source', x->>'id', x->>'reason', x->>'hash', ord
),${ROOM},${INSERT}${WIDEN}${ANSWER}`)

/**
 * Puts those of them in quarantine that were missing from the answer because a message of another type has their key. In: with
 * a `hash` that has the type in it, and the one that is `untyped`. A statement of its own: inside the one that met the other row, that row
 * is still invisible. Out: as for QUARANTINE. Index: quarantine_once.
 */
export const QUARANTINE_APART = statement<Input, QuarantineAnswer>(`${INPUT},
message as materialized (
  select distinct on (x->>'consumer', x->>'source', x->>'id', x->>'reason', x->>'hash') x, ord
  from input, jsonb_array_elements(given->'messages') with ordinality a(x, ord)
  where not exists (select 1 from ob.quarantine q
    where ${SAME_ID} and q.hash = decode(x->>'untyped', 'hex') and q.type = x->>'type')
  order by x->>'consumer', x->>'source', x->>'id', x->>'reason', x->>'hash', ord
),${ROOM},${INSERT}${WIDEN}${ANSWER}`)

/**
 * Keeps messages that were there already for as long as the source that brought them again wants; without `keepMs` until somebody decides.
 * Never for less. Index: quarantine_once.
 */
export const QUARANTINE_LONGER = statement<readonly QuarantineRow[]>(`
with wanted as materialized (
  select q.n, nullif(max(coalesce(ob.now() + (x->>'keepMs')::float8 * interval '1 ms', 'infinity')), 'infinity') until
  from jsonb_array_elements($1::text::jsonb) x cross join lateral (
    select q.n from ob.quarantine q where ${SAME_ID} and q.expires_at is not null and q.type = x->>'type'
      and q.hash = any (array[decode(x->>'hash', 'hex'), decode(x->>'untyped', 'hex')]) limit 2) q
  group by q.n
),
locked as materialized (
  select q.n, wanted.until from wanted join ob.quarantine q on q.n = wanted.n order by q.n for update of q
)
update ob.quarantine q set expires_at = locked.until from locked
where q.n = locked.n and (locked.until is null or locked.until > q.expires_at)`)

/** What sources have in quarantine. In: their names. No row back: nothing was ever counted for it. */
export const QUARANTINE_ACCOUNTS = statement<readonly string[], { via: string; messages: string; bytes: string }>(`
select a.via, a.messages::text, a.bytes::text from jsonb_array_elements_text($1::text::jsonb) x
join ob.quarantine_account a on a.via = x collate "C"`)

/**
 * Rules that several statements go by, each said once: pieces of SQL that are put together when the modules load. How old a
 * message may be to be judged new is a function of the schema, `ob.is_fresh`.
 */

/** The key of a message, as statements take it. */
export type MessageKey = readonly [consumer: string, source: string, id: string]

/** Two rows are of one message. */
export function same(one: string, other: string): string {
  return `${one}.consumer = ${other}.consumer and ${one}.source = ${other}.source and ${one}.id = ${other}.id`
}

/** What tells a copy of a message from another one: pieces of SQL. The origin is null where the key is the producer's. */
interface Came {
  readonly hash: string
  readonly body: string
  /** Both are known to say the same in other words. */
  readonly reworded: string
  readonly originId: string
  readonly originSource: string
}

/**
 * The row `m` of the journal is of what came: a fingerprint, or the text, is the same, or is known to say the same, one of them is
 * not to be compared, or they are two messages about one fact. Null or false: the caller has to compare them, in classify().
 */
export function isCopy(m: string, { hash, body, reworded, originId, originSource }: Came): string {
  return `(${m}.hash is null and (${m}.unhashed is not true or ${m}.body = ${body}) or ${reworded}
        or ${hash} is null or ${m}.hash = decode(${hash}, 'hex') or ${isAnother(m, originId, originSource)})`
}

/** The row `m` of the journal is of another message, with the same business key. */
function isAnother(m: string, originId: string, originSource: string): string {
  return `(${originId} is not null and (coalesce(${m}.origin_id, ${m}.id), coalesce(${m}.origin_source, ${m}.source))
          is distinct from (${originId}, ${originSource}))`
}

/** A message in the JSON `m`, as statements on arrival are given it. */
export const AS_IT_CAME: Came = {
  hash: `m->>'h'`,
  body: `m->>'b'`,
  reworded: `(m->>'w')::boolean`,
  originId: `m->>'oi'`,
  originSource: `m->>'os'`,
}

/** One row by its key. As lateral subqueries, or a generic plan might hash the whole table. */
export function messageOf(row: string): string {
  return `cross join lateral (select * from ob.message m where ${same('m', row)} limit 1) m`
}
/**
 * What a worker is given of the message of a row of `work`: it lies at the place that the row remembers, or else is found by its
 * key. `limit 1` opens the second arm only where the first has found nothing, or another message.
 */
export function journaledOf(row: string): string {
  const columns = `m.source, m.id, m.n, m.type, m.key, m.body, m.envelope, m.origin_source, m.origin_id, m.received_at`
  return `cross join lateral (
    select ${columns} from ob.message m where m.ctid = ${row}.journal_place and ${same('m', row)}
    union all
    select ${columns} from ob.message m where ${same('m', row)} limit 1) m`
}
export function workOf(row: string): string {
  return `left join lateral (select * from ob.work w where ${same('w', row)} limit 1) w on true`
}
export function laneOf(row: string): string {
  return `left join lateral (select * from ob.lane l where l.consumer = ${row}.consumer and l.key = ${row}.lane limit 1) l
  on true`
}

/** The words of an error that its fingerprint is made of. `failure`: the error as JSON. */
export function wordsOf(failure: string): string {
  return `left(${failure}->>'name', 200) name, left(${failure}->>'code', 100) code,
  left(${failure}->>'message', 500) message`
}

/** Name and code of a failure's innermost cause, as JSON. No more are recorded. */
export function causeOf(failure: string): string {
  const paths = [5, 4, 3, 2, 1].map((depth) => `${failure} #> '{${new Array(depth).fill('cause').join(',')}}'`)
  return `(select jsonb_build_array(left(c->>'name', 200), left(c->>'code', 100))::text
    from (select coalesce(${paths.join(', ')}) c) inner_most where c is not null) cause`
}

/**
 * The message that blocks a key: of those of it that wait for a person, the one that failed last. Index: work_front. The function
 * `ob.front_of` says the same to whoever frees lanes.
 */
export function frontOf(consumer: string, lane: string): string {
  return `select front.* from ob.work front
  where front.consumer = ${consumer} and front.lane = ${lane} and front.parked in ('dead', 'quarantined')
  order by front.failed_at desc nulls last, front.seq desc limit 1`
}

/** The number of the first message that waits in a lane, as of the snapshot of its statement; null: none does. Index: work_lane. */
export function headOf(consumer: string, lane: string): string {
  return `select head.seq from ob.work head
  where head.consumer = ${consumer} and head.lane = ${lane} and head.parked is null order by head.seq limit 1`
}

/**
 * The same of an event with the delivery `d`, or none: it is there once for each sink it is still to be published to, and once if it has
 * been published to all.
 */
export const EVENT_STATE = `case
    when d.parked is not null then d.parked when d.sink is null then 'handled' else 'pending' end`

/** Retention leaves a message alone until then, if its consumer retains it for `ms`. */
export function keptUntil(receivedAt: string, ms: string): string {
  return `${receivedAt} + ${ms}::float8 * interval '1 ms' + ob.margin(${ms})`
}

/** The time that a row `m` says of itself, by the clock of its sender; null if it says none. */
export function ownTime(m: string): string {
  const written = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.]?[0-9]*Z$'
  return `substring(${m}.envelope::jsonb->>'time' from '${written}')::timestamptz`
}

/** What `parked` or its absence says of a message with the work `w`, or none, in the lane `l`, or none. */
export const STATE = `case
    when w.id is null then 'handled'
    when w.parked is not null then w.parked
    when coalesce(l.token, w.token) is not null and coalesce(l.due_at, w.due_at) > ob.now() then 'processing'
    else 'pending' end`

/**
 * The box has acknowledged this work, and goes on with it whatever comes. What failed on arrival, and what runs on arrival or
 * did when its worker died, is its source's still.
 */
export function ofTheBox(work: string): string {
  return `(${work}.parked is null and ${work}.reason is distinct from 'arrival')`
}

/**
 * Wakes the lanes of new work: rows with a `consumer` and a `lane`, null for none. Each lane is locked, in the order of keys.
 * One that sleeps falls due; one that is held, blocked or waits for a retry is told that there is more (`dirty`). One that
 * knows is left as it is: under a stronger isolation level each change to it would fail the transaction that is about to
 * settle it, and a busy key would never get anywhere. To count what comes out of it locks them all.
 */
export function wakeLanes(work: string, schema = 'ob'): string {
  return `
  insert into ${schema}.lane as l (consumer, key, due_at)
  select consumer, lane, ${schema}.now() from ${work} where lane is not null group by consumer, lane
  order by consumer collate "C", lane collate "C"
  on conflict (consumer, key) do update set
    dirty = true,
    due_at = case when l.due_at = 'infinity' and l.token is null and not l.blocked then excluded.due_at
                  else l.due_at end
  where not l.dirty or l.due_at = 'infinity'
  returning 1`
}

/**
 * Frees the lanes of work that has left: rows with a `consumer`, a `lane` and a `seq`, and whether it `waited` for its turn. A lane
 * that was blocked by it goes on, and so does one that nothing blocks any more; one that another message blocks stays blocked. One
 * that waited for the retry of its first message goes on if that one has left. A lane that a worker claimed which is gone by now, as
 * `lane` says, gets another token: what comes back of it finds its claim lost. Lanes are matched by grouping: the planner takes
 * these lists for short, and would join them row by row.
 */
export function freeLanes(left: string): string {
  return `
left_behind as materialized (
  select consumer, lane, coalesce(max(front) = any (array_agg(seq)), max(front) is null) frees, bool_or(live) live,
    coalesce((${headOf('x.consumer', 'x.lane')}) = any (array_agg(seq) filter (where waited)), false) headed
  from (
    select consumer, lane, seq, waited, null::bigint front, null::boolean live from ${left} where lane is not null
    union all select consumer, key, null, null, front, live from lane) x
  group by consumer, lane having count(seq) > 0 and bool_or(live) is not null
),
freed as (
  update ob.lane x set
    token = case when x.token is not null and not b.live then gen_random_uuid() else x.token end,
    blocked = x.blocked and not b.frees,
    due_at = case when x.token is null and case when x.blocked then b.frees else b.headed end
                  then least(x.due_at, ob.now()) else x.due_at end
  from left_behind b where x.consumer = b.consumer and x.key = b.lane
)`
}

/** Every pair of a consumer and a reason in quarantine, by index: as many steps as there are pairs. */
export function quarantinePairs(pair: string): string {
  return `
${pair}(consumer, reason) as (
  (select q.consumer, q.reason from ob.quarantine q order by q.consumer, q.reason limit 1)
  union all
  select next.consumer, next.reason from ${pair} cross join lateral (
    select q.consumer, q.reason from ob.quarantine q where (q.consumer, q.reason) > (${pair}.consumer, ${pair}.reason)
    order by q.consumer, q.reason limit 1) next
)`
}

/**
 * The consumers that take messages of a box: those of the parameter, which is `given->'consumers'` of `input`, and those that
 * are registered. Local options win, but for a promise that another process makes: order.
 */
export function subscribed(schema = 'ob'): string {
  return `
local as materialized (
  select x->>'name' name, (x->>'ordered')::boolean ordered, (x->>'retainMs')::float8 retain_ms, x->>'untimed' untimed,
         x->'types' types, coalesce((x->>'identity')::boolean, false) identity
  from input, jsonb_array_elements(given->'consumers') x
),
subscribed as materialized (
  select s.consumer, s.type, coalesce(l.ordered, false) or coalesce(o.ordered, false) ordered,
         coalesce(l.retain_ms, o.retain_ms) retain_ms, coalesce(l.untimed, o.untimed) untimed, f.sent_before,
         coalesce(o.identity, false) identity, coalesce(o.identity, false) and not coalesce(l.identity, false) guessed
  from (select name consumer, jsonb_array_elements_text(types) type from local
        union select consumer, type from ${schema}.subscription) s
  left join local l on l.name = s.consumer
  left join ${schema}.consumer o on o.name = s.consumer
  left join ${schema}.forgotten f on f.consumer = s.consumer
)`
}

/** The envelope of a message that was only recorded as handled: nobody has its body, so it cannot be run. */
export const MARKED = '{"marked":true}'

/** The same envelope, of a message that was recorded without its body. */
export function asMarked(envelope: string | null): string {
  return envelope === null ? MARKED : JSON.stringify({ ...(JSON.parse(envelope) as object), marked: true })
}

export function isMarked(envelope: string | null): boolean {
  return (
    envelope?.includes('"marked"') === true && (JSON.parse(envelope) as { readonly marked?: unknown }).marked === true
  )
}

/**
 * The work of the messages whose `keys` are in `given` of `input`, as it was when the statement began, and then their lanes,
 * locked. `front` is the number of the message that blocks a lane, as of the lock: null if it is not blocked, or if what blocked
 * it is gone.
 */
export function chosenWork(): string {
  return `
chosen as materialized (
  select distinct w.consumer, w.source, w.id, w.lane from input, jsonb_array_elements(given->'keys') x cross join lateral (
    select * from ob.work w where w.consumer = x->>0 and w.source = x->>1 and w.id = x->>2 limit 1) w
),
lane as materialized (
  select consumer, key, live, case when blocked then ob.front_of(consumer, key) end front from (
    select l.consumer, l.key, l.blocked, l.token is not null and l.due_at > ob.now() live
    from (select distinct consumer, lane from chosen where lane is not null) c
    join ob.lane l on l.consumer = c.consumer and l.key = c.lane
    order by l.consumer, l.key for update of l) locked
)`
}

/** The consumers that a table has rows of, as a CTE, found by hopping through its index. The last of them is null. */
export function consumersIn(table: 'message' | 'work' | 'quarantine', name: string): string {
  return `${name}(name) as (
  select (select x.consumer from ob.${table} x order by x.consumer limit 1)
  union all
  select (select x.consumer from ob.${table} x where x.consumer > ${name}.name order by x.consumer limit 1)
  from ${name} where ${name}.name is not null
)`
}

/** The sinks with events to publish, `live` now and `sleepers` later, found in the same way. */
export function waitingSinks(): string {
  return `live(name) as (
  (select d.sink from ob.delivery d where d.sink > '' and d.parked is null and not d.waiting order by d.sink, d.shard, d.n limit 1)
  union all
  select (select d.sink from ob.delivery d where d.sink > live.name and d.parked is null and not d.waiting
    order by d.sink, d.shard, d.n limit 1)
  from live where live.name is not null
),
sleepers(name) as (
  (select d.sink from ob.delivery d where d.sink > '' and d.parked is null and d.waiting order by d.sink, d.due_at limit 1)
  union all
  select (select d.sink from ob.delivery d where d.sink > sleepers.name and d.parked is null and d.waiting
    order by d.sink, d.due_at limit 1)
  from sleepers where sleepers.name is not null
)`
}

/** The consumers with something parked, or the one that is asked for, found by hopping through the index. */
export function parkingConsumers(): string {
  return `consumer(name) as (
  select coalesce((select consumer from input),
    (select w.consumer from ob.work w where w.parked is not null order by w.consumer limit 1)) collate "C"
  union all
  select (select w.consumer from ob.work w where w.parked is not null and w.consumer > consumer.name
    order by w.consumer limit 1)
  from consumer where consumer.name is not null and (select consumer from input) is null
)`
}

/** Where the doctor's counts end. */
export const COUNTED_TO = 10_000

/** The age of a time in ms. */
export function age(time: string): string {
  return `(extract(epoch from ob.now() - ${time}) * 1000.0)::bigint`
}

/**
 * What a claim tells of its look at what is due, between spaces: when the first of it had fallen due, in ms since 1970; how long it
 * took to find that (`seen`), in ms; and how many rows it has locked.
 */
export const LOOK = `
  (extract(epoch from min(due_at)) * 1000.0)::bigint || ' ' ||
  (extract(epoch from min(seen) - statement_timestamp()) * 1000.0)::bigint || ' ' || count(*)`

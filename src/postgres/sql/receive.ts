/** Statements of the front door. */

/**
 * Stores a batch for every subscribed consumer: the journal row, the lane if the consumer is ordered, the work row.
 *
 * In: `m` messages `{ i id, s source, t type, k key, b body, h hash, e envelope, at time, r }`, where `r` is what few have:
 * `{ ids business keys by consumer, no consumers that cannot take it, l the lane if that is not the key, f }`, and `f` is
 * 'person' if a person has judged its age, or the time since when it has waited in quarantine; `c` the local consumers `{ n name, o ordered, r retainMs, u untimed,
 * t types, identity }`; `only` restricts to these consumers, null for all; `not` leaves out pairs
 * [consumer, type] that get theirs in another way; `wait` is how long to wait for a copy that is being handled on
 * arrival, whose mark is not committed yet.
 * Out, as one JSON row: `targets` by type; `rest`, the pairs [ord, consumer] that were not stored; `old`, the pairs
 * too old to be stored. A pair in neither list is stored.
 *
 * Rows are inserted in the order of their key, or two batches that share ids would deadlock. The sequence number is
 * drawn after the lane is locked, so within a lane it follows the order of commits: counting the lanes locks them all.
 * A lane that is dirty already is locked and left as it is: under a stronger isolation level each change to it would fail
 * the transaction that is about to settle it, and a busy key would never get anywhere.
 * Nothing is joined where counts show that all is new: the planner takes what an insert returns for one row, and would
 * compare each of a thousand messages with each of a thousand lanes.
 * Raises 40001 if retention has forgotten messages of this age meanwhile, and OB003 with the name of a consumer that has
 * a business key which this process cannot compute.
 */
export const RECEIVE = `
with p as materialized (
  select j, set_config('lock_timeout', j->>'wait', true) from (select $1::text::jsonb j) x
),
e as materialized (
  select ord, x->>'i' id, x->>'s' source, x->>'t' type, x->>'k' key, x->>'b' body, x->>'h' hash, x->>'e' envelope,
         (x->>'at')::timestamptz at, x->'r' rare
  from p, jsonb_array_elements(j->'m') with ordinality as a(x, ord)
),
local as materialized (
  select x->>'n' name, (x->>'o')::boolean ordered, (x->>'r')::float8 retain_ms, x->>'u' untimed, x->'t' types,
         coalesce((x->>'identity')::boolean, false) identity
  from p, jsonb_array_elements(j->'c') x
),
c as materialized (
  select s.consumer, s.type, coalesce(l.ordered, false) or coalesce(o.ordered, false) ordered,
         coalesce(l.retain_ms, o.retain_ms) retain_ms, coalesce(l.untimed, o.untimed) untimed, g.sent_before,
         coalesce(o.identity, false) and not coalesce(l.identity, false) guessed
  from (select name consumer, jsonb_array_elements_text(types) type from local
        union select consumer, type from ob.subscription) s
  left join local l on l.name = s.consumer
  left join ob.consumer o on o.name = s.consumer
  left join ob.forgotten g on g.consumer = s.consumer
  where (select j->'only' = 'null'::jsonb from p)
     or s.consumer in (select jsonb_array_elements_text(j->'only') from p where j->'only' <> 'null'::jsonb)
),
t as materialized (
  select distinct on (e.type, c.consumer) e.type, c.consumer, c.ordered, c.retain_ms, c.untimed, c.sent_before, c.guessed
  from (select distinct type from e) e join c on c.type in (e.type, '*')
  where (c.consumer, e.type) not in (select x->>0, x->>1 from p, jsonb_array_elements(j->'not') x)
),
f as materialized (
  select e.ord, t.consumer, case when e.rare->'ids'->>t.consumer is null then e.source else '' end source,
         coalesce(e.rare->'ids'->>t.consumer, e.id) id, case when t.ordered then coalesce(e.rare->>'l', e.key) end lane,
         case when e.rare->>'f' is distinct from 'person' then e.at end at,
         case when e.rare->>'f' = 'person' then true
              when e.rare->>'f' is not null and not ob.is_fresh((e.rare->>'f')::timestamptz, t.retain_ms, 'accept', null)
                then false
              else ob.is_fresh(e.at, t.retain_ms, t.untimed, t.sent_before) end fresh
  from e join t on t.type = e.type and case when t.guessed then ob.refuse('OB003', t.consumer) else true end
  where e.rare->'no' is null or not e.rare->'no' @> to_jsonb(t.consumer)
),
m as materialized (
  select distinct on (consumer, source, id) * from f where fresh order by consumer, source, id, ord
),
ins as (
  insert into ob.message as t (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select m.consumer, m.source, m.id, e.type, e.key, e.body, decode(e.hash, 'hex'), e.envelope,
         case when m.id is distinct from e.id or m.source <> e.source then e.source end,
         case when m.id is distinct from e.id or m.source <> e.source then e.id end
  from m join e using (ord)
  order by m.consumer collate "C", m.source collate "C", m.id collate "C"
  on conflict do nothing
  returning t.consumer, t.source, t.id
),
n as materialized (
  select ord, consumer, source, id, lane, at from m where (select count(*) from ins) = (select count(*) from m)
  union all
  select m.ord, consumer, source, id, m.lane, m.at from ins join m using (consumer, source, id)
  where (select count(*) from ins) <> (select count(*) from m)
),
still_fresh as materialized (select ob.refuse_forgotten(consumer, min(at)) from n group by consumer),
lanes as (
  insert into ob.lane as l (consumer, key, due_at)
  select consumer, lane, ob.now() from n where lane is not null group by consumer, lane
  order by consumer collate "C", lane collate "C"
  on conflict (consumer, key) do update set
    dirty = true,
    due_at = case when l.due_at = 'infinity' and l.token is null and not l.blocked then excluded.due_at
                  else l.due_at end
  where not l.dirty or l.due_at = 'infinity'
  returning 1
),
w as (
  insert into ob.work (consumer, source, id, seq, lane, due_at)
  select consumer, source, id, nextval('ob.seq'), lane, ob.now()
  from (select * from n where lane is null or (select count(*) from lanes) >= 0 order by ord) o
  returning 1
)
select jsonb_build_object(
  'stored', (select count(*) from w),
  'consumers', (select count(*) from still_fresh),
  'targets', coalesce((select jsonb_object_agg(type, consumers) from (
      select type, jsonb_agg(consumer order by consumer) consumers from t group by type) t), '{}'),
  'rest', case when (select count(*) from n) = (select count(*) from f) then '[]' else
      coalesce((select jsonb_agg(jsonb_build_array(f.ord, f.consumer)) from f
        where not exists (select 1 from n where n.ord = f.ord and n.consumer = f.consumer)), '[]') end,
  'old', coalesce((select jsonb_agg(jsonb_build_array(f.ord, f.consumer)) from f where not fresh), '[]')
)::text answer`

/**
 * What became of messages that are known already. Always a statement of its own: inside the statement that waited for
 * a conflicting row, that row is still invisible.
 *
 * In: a list of `[consumer, source, id, hash, producer's id, producer's source, type]`. The producer's id and source are
 * there only where `id` is a business key, which has the type in it: two messages about one fact may differ, one message may
 * not. The type is null if the caller does not know it. Out: one row for each that exists, with its position; `synchronous` says that commits wait for
 * a standby, see CONFIRM.
 */
export const CLASSIFY = `
select (k.ord - 1)::text "at", m.result,
       ((m.hash is null or x->>3 is null or m.hash = decode(x->>3, 'hex')
        or (m.origin_id, m.origin_source) is distinct from (x->>4, x->>5) and x->>4 is not null)
         and (x->>6 is null or m.type = x->>6))::text same,
       case when w.id is null then 'handled'
            when w.parked is not null then w.parked
            when coalesce(l.token, w.token) is not null and coalesce(l.due_at, w.due_at) > ob.now()
              then case when w.reason = 'arrival' then 'arriving' else 'processing' end
            else 'pending' end state,
       w.reason, w.error, w.attempts::text, (current_setting('synchronous_standby_names') <> '')::text synchronous,
       (extract(epoch from case when w.due_at < 'infinity' then w.due_at end) * 1000.0)::bigint::text due
from jsonb_array_elements($1::text::jsonb) with ordinality k(x, ord)
cross join lateral (select * from ob.message m
  where m.consumer = x->>0 and m.source = x->>1 and m.id = x->>2 limit 1) m
left join ob.work w on w.consumer = m.consumer and w.source = m.source and w.id = m.id
left join ob.lane l on l.consumer = w.consumer and l.key = w.lane`

/**
 * A commit that writes next to nothing, and waits for the synchronous standbys like every other: when it is answered, all
 * that was committed before is there too. The row of a known message may not be, if the wait of its own commit was
 * cancelled. Where no standby is waited for there is nothing to write. The answer does not matter.
 */
export const CONFIRM = `
select pg_logical_emit_message(true, 'oncebox', $1::text)::text
where current_setting('synchronous_standby_names') <> ''`

/** Hands inline failures that wait for their source over to the box. No row back: it is not waiting any more. */
export const UNPARK_FAILED = `
with l as materialized (
  select w.consumer, w.source, w.id from jsonb_array_elements($1::text::jsonb) x
  join ob.work w on w.consumer = x->>0 and w.source = x->>1 and w.id = x->>2
  where w.parked = 'failed' order by w.consumer, w.source, w.id for update of w
)
update ob.work w set parked = null, due_at = ob.now() from l
where w.consumer = l.consumer and w.source = l.source and w.id = l.id and w.parked = 'failed'
returning w.consumer, w.source, w.id`

/**
 * Consumers of these types, beyond those that run now. In: `{ t types, not: [[consumer, type], …], keyless: [consumer, …] }`.
 * With `guessed`: one of `keyless`, which run now and have no business key here, but have one in another process.
 */
export const OTHER_CONSUMERS = `
with p as materialized (select $1::text::jsonb j)
select distinct s.consumer, 'false' guessed
from p, jsonb_array_elements_text(j->'t') t(type) join ob.subscription s on s.type in (t.type, '*')
where (s.consumer, t.type) not in (select x->>0, x->>1 from jsonb_array_elements(j->'not') x)
union all
select o.name, 'true' from p, jsonb_array_elements_text(j->'keyless') k(name) join ob.consumer o on o.name = k.name
where o.identity`

/** Wakes the workers of other processes. Sent after the commit: inside a transaction it would serialise commits. */
export const NOTIFY = `select pg_notify($1::text::jsonb->>0, '')`

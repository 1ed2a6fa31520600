-- What people and their tools may rely on in SQL: three views. The tables behind them are no contract. Columns are only ever
-- added, at the end. No column has a payload: no body, no envelope, no result.
--
-- They run with the rights of their owner, so that a role may be given the views and nothing else. They hide columns and no
-- rows: nothing that a query brings along gets to see more than it selects, so there is no need for a barrier.

-- It had the results of handlers, which are payloads.
drop view ob.messages;

-- The state of every message, as `admin.messages` has it. One part for each way in which a state is found, because a filter on
-- it then leaves the other parts out: `state` is a constant in most of them. Each is there twice: once for messages that are
-- known by the producer's id, whose primary key is then used, and once for those that are known by a business key.
create view ob.messages as
-- handled: there is no work left
select m.consumer, m.source, m.id, m.type, m.key, 'handled'::text state, 0 attempts, m.received_at, h.at handled_at,
  null::timestamptz due_at, null::text error, null::text reason
from ob.message m left join ob.handled h on h.n = m.n
where m.origin_id is null and not exists (
  select 1 from ob.work w where w.consumer = m.consumer and w.source = m.source and w.id = m.id)
union all
select m.consumer, coalesce(m.origin_source, m.source), m.origin_id, m.type, m.key, 'handled', 0, m.received_at, h.at, null, null, null
from ob.message m left join ob.handled h on h.n = m.n
where m.origin_id is not null and not exists (
  select 1 from ob.work w where w.consumer = m.consumer and w.source = m.source and w.id = m.id)
-- pending: nobody holds it, or its lane
union all
select m.consumer, m.source, m.id, m.type, m.key, 'pending', w.attempts, m.received_at, null,
  nullif(coalesce(l.due_at, w.due_at), 'infinity'), w.error::jsonb->>'message', null
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
left join ob.lane l on l.consumer = w.consumer and l.key = w.lane
where m.origin_id is null and w.parked is null
  and (coalesce(l.token, w.token) is null or coalesce(l.due_at, w.due_at) <= ob.now())
union all
select m.consumer, coalesce(m.origin_source, m.source), m.origin_id, m.type, m.key, 'pending', w.attempts, m.received_at, null,
  nullif(coalesce(l.due_at, w.due_at), 'infinity'), w.error::jsonb->>'message', null
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
left join ob.lane l on l.consumer = w.consumer and l.key = w.lane
where m.origin_id is not null and w.parked is null
  and (coalesce(l.token, w.token) is null or coalesce(l.due_at, w.due_at) <= ob.now())
-- processing: a worker holds it
union all
select m.consumer, m.source, m.id, m.type, m.key, 'processing', w.attempts, m.received_at, null,
  w.due_at, w.error::jsonb->>'message', null
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is null and w.lane is null and w.parked is null and w.token is not null and w.due_at > ob.now()
union all
select m.consumer, coalesce(m.origin_source, m.source), m.origin_id, m.type, m.key, 'processing', w.attempts, m.received_at, null,
  w.due_at, w.error::jsonb->>'message', null
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is not null and w.lane is null and w.parked is null and w.token is not null and w.due_at > ob.now()
-- processing: a worker holds its lane
union all
select m.consumer, m.source, m.id, m.type, m.key, 'processing', w.attempts, m.received_at, null,
  l.due_at, w.error::jsonb->>'message', null
from ob.lane l join ob.work w on w.consumer = l.consumer and w.lane = l.key
join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is null and w.parked is null and l.token is not null and l.due_at > ob.now() and l.due_at < 'infinity'
union all
select m.consumer, coalesce(m.origin_source, m.source), m.origin_id, m.type, m.key, 'processing', w.attempts, m.received_at, null,
  l.due_at, w.error::jsonb->>'message', null
from ob.lane l join ob.work w on w.consumer = l.consumer and w.lane = l.key
join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is not null and w.parked is null and l.token is not null and l.due_at > ob.now() and l.due_at < 'infinity'
-- pending: it failed on arrival, and waits for its source
union all
select m.consumer, m.source, m.id, m.type, m.key, 'pending', w.attempts, m.received_at, null,
  nullif(w.due_at, 'infinity'), w.error::jsonb->>'message', null
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is null and w.parked = 'failed'
union all
select m.consumer, coalesce(m.origin_source, m.source), m.origin_id, m.type, m.key, 'pending', w.attempts, m.received_at, null,
  nullif(w.due_at, 'infinity'), w.error::jsonb->>'message', null
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is not null and w.parked = 'failed'
-- dead, discarded, and quarantined by an effect: they wait for a person
union all
select m.consumer, m.source, m.id, m.type, m.key, w.parked, w.attempts, m.received_at, null,
  null, w.error::jsonb->>'message', nullif(w.reason, 'arrival')
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is null and w.parked is not null and w.parked <> 'failed'
union all
select m.consumer, coalesce(m.origin_source, m.source), m.origin_id, m.type, m.key, w.parked, w.attempts, m.received_at, null,
  null, w.error::jsonb->>'message', nullif(w.reason, 'arrival')
from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id
where m.origin_id is not null and w.parked is not null and w.parked <> 'failed'
-- quarantined on arrival: the consumer is '' where it reached none. What was wrong may quote the message, and is left out.
union all
select q.consumer, q.source, coalesce(q.id, ''), q.type, q.key, case when q.discarded is null then 'quarantined' else 'discarded' end,
  0, q.received_at, null, null, null, q.reason
from ob.quarantine q;

-- Every event of the outbox: once for each sink that it is still to be published to, and once if it has been published to all.
-- The sink '' stands for events that no sink has wanted so far.
create view ob.outbox_events as
select d.sink, o.source, o.id, o.type, o.key, 'pending'::text state, d.attempts, o.created_at sent_at, null::timestamptz published_at,
  nullif(d.due_at, 'infinity') due_at, d.error::jsonb->>'message' error
from ob.delivery d join ob.outbox o on o.n = d.n where d.parked is null
union all
select d.sink, o.source, o.id, o.type, o.key, d.parked, d.attempts, o.created_at, null, null, d.error::jsonb->>'message'
from ob.delivery d join ob.outbox o on o.n = d.n where d.parked is not null
union all
select '', o.source, o.id, o.type, o.key, 'handled', 0, o.created_at, o.published_at, null, null
from ob.outbox o where not exists (select 1 from ob.delivery d where d.n = o.n);

-- How far behind each consumer and each sink is: the age of the oldest message or event that is due, as `admin.status` has it,
-- and how many are due, counted up to 10 000. It looks at the ends of indexes alone, however much there is. The names are
-- unnested so that the planner takes them for few: for the hundreds that it sees in a table nobody has analyzed it would
-- compile the query, which takes a thousand times as long as running it.
create view ob.lag as
with recursive busy(name) as (
  select (select w.consumer from ob.work w order by w.consumer limit 1)
  union all
  select (select w.consumer from ob.work w where w.consumer > busy.name order by w.consumer limit 1)
  from busy where busy.name is not null
),
live(name) as (
  (select d.sink from ob.delivery d where d.sink > '' and d.parked is null and not d.waiting order by d.sink, d.shard, d.n limit 1)
  union all
  select (select d.sink from ob.delivery d where d.sink > live.name and d.parked is null and not d.waiting
    order by d.sink, d.shard, d.n limit 1)
  from live where live.name is not null
)
select 'inbox'::text box, c.name, coalesce(o.paused, false) paused, greatest(0, coalesce(oldest.ms, 0))::bigint lag_ms, due.n due
from unnest(array(select o.name from ob.consumer o union select b.name from busy b where b.name is not null)) c(name)
left join ob.consumer o on o.name = c.name
cross join lateral (
  select max(extract(epoch from ob.now() - m.received_at) * 1000.0) ms
  from (
    (select w.consumer, w.source, w.id from ob.work w
     where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at <= ob.now() order by w.due_at limit 100)
    union all
    (select w.consumer, w.source, w.id from ob.lane l cross join lateral (
       select * from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null order by w.seq limit 1) w
     where l.consumer = c.name and l.due_at <= ob.now() and l.due_at < 'infinity' order by l.due_at limit 100)
  ) w cross join lateral (select m.received_at from ob.message m
    where m.consumer = w.consumer and m.source = w.source and m.id = w.id limit 1) m
) oldest
cross join lateral (
  select count(*) n from (
    (select 1 from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at <= ob.now()
     order by w.due_at limit 10000)
    union all
    (select 1 from ob.lane l cross join lateral (
       select 1 from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null order by w.seq limit 10000) w
     where l.consumer = c.name and l.due_at <= ob.now() and l.due_at < 'infinity' limit 10000)
    limit 10000) found
) due
union all
select 'outbox', s.name, false, greatest(0, coalesce(oldest.ms, 0))::bigint, due.n
from unnest(array(select s.name from ob.sink s union select l.name from live l where l.name is not null)) s(name)
cross join lateral (
  select max(extract(epoch from ob.now() - o.created_at) * 1000.0) ms
  from (
    (select head.n from generate_series(0, 31) part(shard) cross join lateral (
       select d.n from ob.delivery d
       where d.sink = s.name and d.shard = part.shard and d.parked is null and not d.waiting order by d.n limit 1) head)
    union all
    (select d.n from ob.delivery d
     where d.sink = s.name and d.parked is null and d.waiting and d.due_at <= ob.now() order by d.due_at limit 100)
  ) head cross join lateral (select o.created_at from ob.outbox o where o.n = head.n limit 1) o
) oldest
cross join lateral (
  select count(*) n from (
    (select 1 from ob.delivery d where d.sink = s.name and d.parked is null and not d.waiting
     order by d.shard, d.n limit 10000)
    union all
    (select 1 from ob.delivery d where d.sink = s.name and d.parked is null and d.waiting and d.due_at <= ob.now()
     order by d.due_at limit 10000)
    limit 10000) found
) due;

-- Consumers that are removed. A new table only: processes of an older version write nothing to it, and are known by what they hold.

-- Which processes run a consumer, so that nobody removes it under them. One that stops stays on record until another process
-- runs the consumer: when it was seen last is worth knowing.
create table ob.consumer_process (
  consumer text collate "C" not null,
  process uuid not null,
  host text not null,
  seen_at timestamptz not null default ob.now(),
  stopped boolean not null default false,
  primary key (consumer, process)
);

-- Removes a consumer from the registry, unless a process runs it, or there is what it has not handled. In and out: see
-- REMOVE_CONSUMER. Receivers read the subscriptions in the statement by which they store: who has the table alone has waited for
-- all that store for this consumer, and those that come read what is left. Each statement of a volatile function sees what was
-- committed before it. Nothing is counted further than a person would: meanwhile receivers wait.
create function ob.remove_consumer(given jsonb) returns jsonb language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
declare
  named text := given->>'consumer';
  users jsonb;
  held boolean;
  known boolean;
  pending bigint;
  dead bigint;
  quarantined bigint;
  removed boolean;
begin
  -- Some sessions need settings first, and then the statement is not the whole transaction.
  perform set_config('lock_timeout', given->>'wait', true), set_config('idle_in_transaction_session_timeout', '5000', true);
  lock table ob.subscription in access exclusive mode;
  perform 1 from ob.consumer o where o.name = named for update;
  known := found
    or (select 1 from ob.message m where m.consumer = named order by m.received_at limit 1) is not null
    or (select 1 from ob.quarantine q where q.consumer = named order by q.reason limit 1) is not null
    or (select 1 from ob.lane l where l.consumer = named order by l.key limit 1) is not null;
  select coalesce(jsonb_agg(p.host order by p.host), '[]') into users from ob.consumer_process p
  where p.consumer = named and not p.stopped and p.seen_at >= ob.now() - (given->>'goneMs')::float8 * interval '1 ms';
  held := exists (select 1 from (
      select w.token from ob.work w where w.consumer = named and w.lane is null and w.parked is null and w.due_at > ob.now()
      order by w.due_at limit 100000) ahead where ahead.token is not null)
    or exists (select 1 from (
      select l.token from ob.lane l where l.consumer = named and l.due_at > ob.now() and l.due_at < 'infinity'
      order by l.due_at limit 100000) ahead where ahead.token is not null);
  pending := (select count(*) from (select 1 from ob.work w
      where w.consumer = named and w.lane is null and w.parked is null order by w.due_at limit 10000) x)
    + (select count(*) from (select 1 from ob.work w
      where w.consumer = named and w.lane is not null and w.parked is null order by w.lane limit 10000) x)
    + (select count(*) from (select 1 from ob.work w
      where w.consumer = named and w.parked = 'failed' order by w.seq limit 10000) x);
  dead := (select count(*) from (select 1 from ob.work w
      where w.consumer = named and w.parked = 'dead' order by w.seq limit 10000) x);
  quarantined := (select count(*) from (select 1 from ob.work w
      where w.consumer = named and w.parked = 'quarantined' order by w.seq limit 10000) x)
    + (select count(*) from (select 1 from ob.quarantine q
      where q.consumer = named and q.discarded is null order by q.reason, q.n limit 10000) x);
  removed := known and users = '[]'::jsonb and not held
    and ((given->>'discard')::boolean or pending + dead + quarantined = 0);
  if removed then
    delete from ob.consumer_process p where p.consumer = named;
    delete from ob.consumer o where o.name = named;
  end if;
  return jsonb_build_object('known', known, 'users', users, 'held', held, 'removed', removed,
    'pending', pending, 'dead', dead, 'quarantined', quarantined, 'at', to_json(ob.now()), 'seq', nextval('ob.seq')::text);
end $$;

-- Removes lanes in which nothing waits and that nobody holds, of a consumer that is not registered. Locked first, and judged by
-- what is there then: a receiver may have left work in a lane that it found as it was, without changing it. Answers how many went.
create function ob.remove_lanes(of_consumer text, most int) returns int language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
declare
  chosen tid[];
  gone int;
begin
  chosen := array(select l.ctid from ob.lane l where l.consumer = of_consumer order by l.key limit most
    for update of l skip locked);
  delete from ob.lane l where l.ctid = any (chosen)
    and (l.token is null or l.due_at <= ob.now())
    and not exists (select 1 from ob.consumer o where o.name = of_consumer)
    and not exists (select 1 from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null);
  get diagnostics gone = row_count;
  return gone;
end $$;

-- The message that blocks a key: of those of it that wait for a person, the one that failed last. Null: none does. Whoever frees a
-- lane asks with the lane locked, and is told what was committed before the lock came, for the function is volatile: a
-- statement that waited for the lock knows only what there was when it began.
create function ob.front_of(of_consumer text, of_lane text) returns bigint language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
begin
  return (select w.seq from ob.work w
    where w.consumer = of_consumer and w.lane = of_lane and w.parked in ('dead', 'quarantined')
    order by w.failed_at desc nulls last, w.seq desc limit 1);
end $$;

-- As before, but that a lane which another message blocks stays blocked.
create or replace function ob.resume_parked(of_consumer text, of_source text, of_id text) returns boolean
  language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  of_lane text;
  front bigint;
  resumed ob.work;
begin
  select w.lane into of_lane from ob.work w
  where w.consumer = of_consumer and w.source = of_source and w.id = of_id
    and w.parked = 'quarantined' and w.reason = 'effect-unknown';
  if not found then
    return false;
  end if;
  if of_lane is not null then
    perform 1 from ob.lane l where l.consumer = of_consumer and l.key = of_lane for no key update;
    front := ob.front_of(of_consumer, of_lane);
  end if;
  update ob.work w set parked = null, reason = null, due_at = ob.now()
  where w.consumer = of_consumer and w.source = of_source and w.id = of_id
    and w.parked = 'quarantined' and w.reason = 'effect-unknown'
  returning * into resumed;
  if not found then
    return false;
  end if;
  if resumed.lane is not null then
    insert into ob.lane as l (consumer, key, due_at) values (resumed.consumer, resumed.lane, ob.now())
    on conflict (consumer, key) do update set dirty = true,
      blocked = l.blocked and front <> resumed.seq,
      due_at = case when l.token is null and (not l.blocked or front = resumed.seq) then excluded.due_at else l.due_at end;
  end if;
  return true;
end $$;

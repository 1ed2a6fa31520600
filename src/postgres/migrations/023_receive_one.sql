-- Stores one message for every subscribed consumer: what the statement RECEIVE does, for what most callers have, one message with
-- nothing rare about it. To set up a statement for a thousand messages takes three times as long as to store one.
-- In: the parameter of RECEIVE. Out: its answer. Locks are taken in the same order: the journal, lanes, work.
create function ob.receive_one(param text) returns text language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
declare
  given jsonb := split_part(param, chr(30), 1)::jsonb;
  written text := split_part(param, chr(30), 2);
  kind text collate "C" := given->>'type';
  sender text := given->>'source';
  name text := given->'ids'->>0;
  sent_at timestamptz := (given->'times'->>0)::timestamptz;
  ordered_by text := given->'keys'->>0;
  print text := given->'hashes'->>0;
  taker record;
  at_place tid;
  takers text[] := '{}';
  stored text[] := '{}';
  places tid[] := '{}';
  lanes text[] := '{}';
  rest jsonb := '[]';
  old jsonb := '[]';
  ahead jsonb := '[]';
begin
  perform set_config('lock_timeout', given->>'wait', true);
  for taker in
    select s.consumer, coalesce((l.own->>'ordered')::boolean, false) or coalesce(o.ordered, false) ordered,
           coalesce(o.identity, false) and not coalesce((l.own->>'identity')::boolean, false) guessed,
           ob.is_fresh(sent_at, coalesce((l.own->>'retainMs')::float8, o.retain_ms), coalesce(l.own->>'untimed', o.untimed),
             f.sent_before) fresh
    from (select x->>'name' collate "C" consumer from jsonb_array_elements(given->'consumers') x
          where x->'types' @> to_jsonb(kind) or x->'types' @> '"*"'
          union select w.consumer from ob.subscription w where w.type in (kind, '*')) s
    left join lateral (
      select own from jsonb_array_elements(given->'consumers') own where own->>'name' = s.consumer limit 1) l on true
    left join ob.consumer o on o.name = s.consumer
    left join ob.forgotten f on f.consumer = s.consumer
    where (given->'only' = 'null' or given->'only' @> to_jsonb(s.consumer))
      and not exists (select from jsonb_array_elements(given->'not') pair where pair->>0 = s.consumer and pair->>1 = kind)
    order by s.consumer
  loop
    if taker.guessed then
      perform ob.refuse('OB003', taker.consumer);
    end if;
    takers := takers || taker.consumer;
    if taker.fresh then
      insert into ob.message as m (consumer, source, id, type, key, body, hash, unhashed, envelope)
      values (taker.consumer, sender, name, kind, ordered_by, written, decode(nullif(print, ''), 'hex'),
        case when print is null then true end, given->'envelopes'->>0)
      on conflict do nothing returning m.ctid into at_place;
      if found then
        stored := stored || taker.consumer;
        places := places || at_place;
        lanes := lanes || case when taker.ordered then ordered_by end;
        continue;
      end if;
    else
      old := old || jsonb_build_array(jsonb_build_array(1, taker.consumer));
      if sent_at > ob.now() then
        ahead := ahead || jsonb_build_array(jsonb_build_array(1, taker.consumer));
      end if;
    end if;
    rest := rest || jsonb_build_array(jsonb_build_array(1, taker.consumer));
  end loop;
  for n in 1 .. cardinality(stored) loop
    perform ob.refuse_forgotten(stored[n], sent_at);
    if lanes[n] is not null then
      insert into ob.lane as l (consumer, key, due_at) values (stored[n], lanes[n], ob.now())
      on conflict (consumer, key) do update set
        dirty = true,
        due_at = case when l.due_at = 'infinity' and l.token is null and not l.blocked then excluded.due_at
                      else l.due_at end
      where not l.dirty or l.due_at = 'infinity';
    end if;
  end loop;
  for n in 1 .. cardinality(stored) loop
    insert into ob.work (consumer, source, id, seq, lane, due_at, journal_place)
    values (stored[n], sender, name, nextval('ob.seq'), lanes[n], ob.now(), places[n]);
  end loop;
  return jsonb_build_object('targets', case when takers = '{}' then '{}' else jsonb_build_object(kind, takers) end,
    'rest', rest, 'old', old, 'ahead', ahead);
end $$;

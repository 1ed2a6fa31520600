-- Whose intent it is: each call writes a token of its own, so that only the caller takes its intent back. An older
-- version of the library leaves the token null, and moves called_at when it takes an intent over.
-- `calls` counts the callers: more than one means that somebody called before, with an outcome that nobody knows.
alter table ob.effect add column token uuid, add column calls int not null default 1;

-- Runs a message again that waits for the outcome of an effect. Answers false if it does not wait.
create function ob.resume_parked(of_consumer text, of_source text, of_id text) returns boolean
  language plpgsql volatile as $$
declare
  resumed ob.work;
begin
  update ob.work w set parked = null, reason = null, due_at = ob.now()
  where w.consumer = of_consumer and w.source = of_source and w.id = of_id
    and w.parked = 'quarantined' and w.reason = 'effect-unknown'
  returning * into resumed;
  if not found then
    return false;
  end if;
  if resumed.lane is not null then
    insert into ob.lane as l (consumer, key, due_at) values (resumed.consumer, resumed.lane, ob.now())
    on conflict (consumer, key) do update set blocked = false, dirty = true,
      due_at = case when l.token is null then excluded.due_at else l.due_at end;
  end if;
  return true;
end $$;

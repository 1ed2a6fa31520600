-- Who did it. `actor` is what the caller says; `role` and `login` are the database's word, which nobody who may only insert
-- the other columns can forge. Null for what was written before. Two steps: a default would be filled in for old rows.
alter table ob.audit add column actor text, add column role text, add column login text;
alter table ob.audit alter column role set default current_user, alter column login set default session_user;

-- Functions run under the caller's `search_path`, where a stranger's function or operator may fit better than the one that is
-- meant. So they bring their own. Not the four that are inlined or run for every message, where that would cost: what they
-- call is named in full, and compares values of one type.
alter function ob.refuse(text, text) set search_path = pg_catalog, pg_temp;
alter function ob.refuse_forgotten(text, timestamptz) set search_path = pg_catalog, pg_temp;
alter function ob.missing_ability() set search_path = pg_catalog, pg_temp;
alter function ob.resume_parked(text, text, text) set search_path = pg_catalog, pg_temp;
alter function ob.register_sinks(jsonb) set search_path = pg_catalog, pg_temp;

create or replace function ob.is_fresh(at timestamptz, retain_ms float8, untimed text, sent_before timestamptz)
  returns boolean language sql stable parallel safe as $$
  select case when at is null or at > ob.now() + least(300000, retain_ms / 10::float8) * interval '1 ms'
              then untimed <> 'quarantine'
              else at >= greatest(ob.now() - (retain_ms - least(300000, retain_ms / 10::float8)) * interval '1 ms', sent_before)
         end $$;

create or replace function ob.close_transaction(xid xid8, guard tid) returns void language plpgsql volatile as $$
begin
  delete from ob.open_group where ctid = guard;
  if not found or pg_catalog.pg_current_xact_id() <> xid then
    perform ob.refuse('OB002', 'the transaction is not the one that was opened');
  end if;
end $$;

create or replace function ob.settle_one(p jsonb) returns void language plpgsql volatile as $$
begin
  delete from ob.open_group where ctid = (p operator(pg_catalog.->>) 'g')::tid;
  if not found or pg_catalog.pg_current_xact_id() <> (p operator(pg_catalog.->>) 'x')::xid8 then
    perform ob.refuse('OB002', 'the transaction is not the one that was opened');
  end if;
  delete from ob.work
  where consumer = p operator(pg_catalog.->>) 'c' and source = p operator(pg_catalog.->>) 's'
    and id = p operator(pg_catalog.->>) 'i' and token = (p operator(pg_catalog.->>) 'k')::uuid;
  if not found then
    perform ob.refuse('OB001', 'the claim was lost');
  end if;
  if p operator(pg_catalog.->>) 'n' is not null then
    insert into ob.handled (n, at) values ((p operator(pg_catalog.->>) 'n')::bigint, ob.now())
    on conflict (n) do update set at = excluded.at;
  end if;
end $$;

-- What retention has forgotten, what a consumer's processes have said of it, and what a start() asks of its server.

-- Logical replication of all tables refuses updates and deletes of a table without a key.
alter table ob.schema_version add primary key (version);

-- By consumer, what may have been forgotten: messages sent before this time. Written by the statement that deletes, so it
-- holds whatever `retainMs` says today, or in another process.
create table ob.forgotten (
  consumer text collate "C" primary key,
  sent_before timestamptz not null
) with (fillfactor = 50);

-- Until now nothing remembered: what the registered options allowed to be deleted may be gone.
insert into ob.forgotten (consumer, sent_before)
select name, ob.now() - (retain_ms - least(300000, retain_ms / 10)) * interval '1 ms' from ob.consumer;

-- Is a message young enough to be judged new? `at` is its own time. One without a time, or from the future, is judged by
-- `untimed`. Inlined wherever it is used.
create function ob.is_fresh(at timestamptz, retain_ms float8, untimed text, sent_before timestamptz) returns boolean
  language sql stable parallel safe as $$
  select case when at is null or at > ob.now() + least(300000, retain_ms / 10) * interval '1 ms'
              then untimed <> 'quarantine'
              else at >= greatest(ob.now() - (retain_ms - least(300000, retain_ms / 10)) * interval '1 ms', sent_before)
         end $$;

-- Raises 40001 if messages as old as this may have been forgotten by now. Called after their insert: the statement that
-- inserts has judged by its snapshot, and retention may have deleted the row that it would have met since. A volatile
-- function looks with a fresh snapshot, and what it has to see was committed together with the delete.
-- A stronger isolation level has no fresh snapshot. There, a row that has a younger version is known by its `xmax`: to
-- lock it fails if that version is committed. And to insert a row fails if there is one that the snapshot does not show.
create function ob.refuse_forgotten(of_consumer text, oldest timestamptz) returns boolean language plpgsql volatile as $$
declare
  watermark timestamptz;
  changed_by xid;
begin
  if oldest is null then
    return false;
  end if;
  select f.sent_before, f.xmax into watermark, changed_by from ob.forgotten f where f.consumer = of_consumer;
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    if watermark is null then
      insert into ob.forgotten (consumer, sent_before) values (of_consumer, '-infinity') on conflict do nothing;
    elsif changed_by <> '0'::xid then
      perform 1 from ob.forgotten f where f.consumer = of_consumer for share;
    end if;
  end if;
  if oldest < watermark then
    raise exception using errcode = '40001', message = 'retention has just forgotten messages of this age';
  end if;
  return false;
end $$;

-- Has a consumer a business key? Then a receiver that lacks the function must not guess. While one process says so, or
-- that the consumer is ordered, no other takes it back: their word holds until then, and they renew it.
-- `declared`: who wrote the row last, and when, for people.
alter table ob.consumer
  add column identity boolean not null default false,
  add column identity_until timestamptz,
  add column ordered_until timestamptz,
  add column declared text;

-- Does this server do what oncebox builds on? Answers with what it does not, or null. Leaves nothing behind.
create function ob.missing_ability() returns text language plpgsql volatile as $$
declare
  place tid;
begin
  if pg_xact_status(pg_current_xact_id()) is distinct from 'in progress' then
    return 'pg_xact_status does not know the current transaction';
  end if;
  insert into ob.work (consumer, source, id, seq, due_at, parked)
  values ('', '', pg_current_xact_id()::text, 0, 'infinity', 'probe') returning ctid into place;
  update ob.work set attempts = 1 where ctid = place returning ctid into place;
  if not found then
    return 'a row cannot be updated by its place (ctid)';
  end if;
  delete from ob.work where ctid = place;
  if not found then
    return 'a row cannot be deleted by its place (ctid)';
  end if;
  begin
    insert into ob.open_group (token) values ('00000000-0000-0000-0000-000000000000');
    set constraints ob.a_handler_must_not_end_its_transaction immediate;
    raise exception using errcode = 'OB005', message = 'a foreign key that is deferred is not checked';
  exception
    when foreign_key_violation then return null;
    when sqlstate 'OB005' then return 'a foreign key that is deferred is not checked';
  end;
end $$;

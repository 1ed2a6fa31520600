-- What a source may keep in quarantine. New columns and a new table only: rows of an older version have no account, and an
-- older version that runs beside this one opens none.

-- `via`: the source whose account the row is on. `expires_at`: after that it need not be kept, even if nobody looked at it.
alter table ob.quarantine add column via text collate "C", add column expires_at timestamptz;

-- What each source has in quarantine that nobody has discarded. Counted by triggers, whoever inserts, discards or deletes.
create table ob.quarantine_account (
  via text collate "C" primary key,
  messages bigint not null default 0,
  bytes bigint not null default 0
) with (fillfactor = 50);

-- The size of a row, without unpacking what is stored compressed.
create function ob.quarantine_bytes(body text, bytes bytea, envelope text) returns bigint language sql immutable parallel safe
  set search_path = pg_catalog, pg_temp as $$ select (coalesce(octet_length(body), 0) + coalesce(octet_length(bytes), 0) + coalesce(octet_length(envelope), 0))::bigint $$;

-- With the rights of the owner: a process of an older version writes to the quarantine under a role that knows of no accounts.
-- So it must count nothing else, for its rows could bring types and operators of their own.
-- One statement each: accounts are locked in their order.
create function ob.count_quarantine() returns trigger language plpgsql volatile security definer
  set search_path = pg_catalog, pg_temp as $$
begin
  if tg_relid <> 'ob.quarantine'::regclass then
    raise exception using errcode = '42501', message = 'this function belongs to another table';
  end if;
  if tg_op = 'INSERT' then
    insert into ob.quarantine_account as a (via, messages, bytes)
    select q.via, count(*), sum(ob.quarantine_bytes(q.body, q.bytes, q.envelope)) from added q
    where q.via is not null and q.discarded is null group by q.via order by q.via
    on conflict (via) do update set messages = a.messages + excluded.messages, bytes = a.bytes + excluded.bytes;
  elsif tg_op = 'DELETE' then
    update ob.quarantine_account a set messages = a.messages - g.messages, bytes = a.bytes - g.bytes
    from (select q.via, count(*) messages, sum(ob.quarantine_bytes(q.body, q.bytes, q.envelope)) bytes from gone q
      where q.via is not null and q.discarded is null group by q.via order by q.via) g
    where a.via = g.via;
  else
    update ob.quarantine_account a set messages = a.messages + c.messages, bytes = a.bytes + c.bytes
    from (select q.via, sum(q.sign) messages, sum(q.sign * ob.quarantine_bytes(q.body, q.bytes, q.envelope)) bytes
      from (select -1 sign, gone.* from gone union all select 1, added.* from added) q
      where q.via is not null and q.discarded is null group by q.via order by q.via) c
    where a.via = c.via and c.messages <> 0;
  end if;
  return null;
end $$;
revoke execute on function ob.count_quarantine() from public;
create trigger quarantine_added after insert on ob.quarantine
  referencing new table as added for each statement execute function ob.count_quarantine();
create trigger quarantine_gone after delete on ob.quarantine
  referencing old table as gone for each statement execute function ob.count_quarantine();
create trigger quarantine_changed after update on ob.quarantine
  referencing old table as gone new table as added for each statement execute function ob.count_quarantine();

-- How full an account would be with so much more in it: above 1 it does not fit. Locks the account until the transaction
-- ends, and judges what it has locked: a volatile function sees what others have committed meanwhile.
create function ob.quarantine_used(of_via text, most float8, most_bytes float8, more float8, more_bytes float8)
  returns float8 language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  used float8;
begin
  insert into ob.quarantine_account (via) values (of_via) on conflict do nothing;
  select greatest((a.messages + more) / most, (a.bytes + more_bytes) / most_bytes) into used
  from ob.quarantine_account a where a.via = of_via for update;
  return used;
end $$;

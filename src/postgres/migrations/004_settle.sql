-- What every transaction that runs handlers pays for, made cheap: its guard, and the settlement of a single message.

-- The guard: a row in open_group refers to a row that does not exist. The check is deferred, so a COMMIT fails as
-- long as the row is there; once the settlement has deleted it there is nothing to check. It is deleted by its place:
-- a table that is always empty and always full of dead rows has no plan but to read them all, or their index entries.
create table ob.nobody (token uuid primary key);
drop trigger refuse_open_group on ob.open_group;
drop function ob.refuse_open_group();
alter table ob.open_group drop constraint open_group_pkey, add constraint a_handler_must_not_end_its_transaction
  foreign key (token) references ob.nobody deferrable initially deferred;

-- Takes the guard away: the transaction's id and the place. Raises OB002 unless this is the transaction that was opened.
create function ob.close_transaction(xid xid8, guard tid) returns void language plpgsql volatile as $$
begin
  delete from ob.open_group where ctid = guard;
  if not found or pg_current_xact_id() <> xid then
    perform ob.refuse('OB002', 'the transaction is not the one that was opened');
  end if;
end $$;

-- Settles one claimed message and takes the guard away: `{ c, k token, x xid, g guard, s source, i id }`. Raises OB001 if
-- the claim was lost. A statement that does the same takes half as long again, to set up what it does not need.
create function ob.settle_one(p jsonb) returns void language plpgsql volatile as $$
begin
  delete from ob.open_group where ctid = (p->>'g')::tid;
  if not found or pg_current_xact_id() <> (p->>'x')::xid8 then
    perform ob.refuse('OB002', 'the transaction is not the one that was opened');
  end if;
  delete from ob.work where consumer = p->>'c' and source = p->>'s' and id = p->>'i' and token = (p->>'k')::uuid;
  if not found then
    perform ob.refuse('OB001', 'the claim was lost');
  end if;
end $$;

-- When a message was handled: one narrow row, only ever inserted, in the order of numbers, which is the cheapest thing
-- to add to a settlement (a key of text took four times as long, an update of the journal would write each body again).
-- `n` names the row of the journal. Messages that were stored before this column existed have none, and no time.
-- Two steps, so that nothing is rewritten: a column that is added with a default would fill it in everywhere.
alter table ob.message add column n bigint, alter column n set default nextval('ob.seq');
create table ob.handled (n bigint primary key, at timestamptz not null);

-- Settles one claimed message and takes the guard away: `{ c, k token, x xid, g guard, s source, i id, n }`. Raises OB001
-- if the claim was lost.
create or replace function ob.settle_one(p jsonb) returns void language plpgsql volatile as $$
begin
  delete from ob.open_group where ctid = (p->>'g')::tid;
  if not found or pg_current_xact_id() <> (p->>'x')::xid8 then
    perform ob.refuse('OB002', 'the transaction is not the one that was opened');
  end if;
  delete from ob.work where consumer = p->>'c' and source = p->>'s' and id = p->>'i' and token = (p->>'k')::uuid;
  if not found then
    perform ob.refuse('OB001', 'the claim was lost');
  end if;
  if p->>'n' is not null then
    insert into ob.handled (n, at) values ((p->>'n')::bigint, ob.now()) on conflict (n) do update set at = excluded.at;
  end if;
end $$;

-- What became of every message, for people and their tools: a contract, unlike the tables. `id` and `source` are the
-- producer's.
create view ob.messages as
select m.consumer, coalesce(m.origin_source, m.source) source, coalesce(m.origin_id, m.id) id, m.type, m.key,
  case when w.id is null then 'handled'
       when w.parked = 'failed' then 'pending'
       when w.parked is not null then w.parked
       when coalesce(l.token, w.token) is not null and coalesce(l.due_at, w.due_at) > ob.now() then 'processing'
       else 'pending' end state,
  coalesce(w.attempts, 0) attempts, m.received_at, case when w.id is null then h.at end handled_at,
  case when coalesce(l.due_at, w.due_at) < 'infinity' then coalesce(l.due_at, w.due_at) end due_at,
  w.error::jsonb->>'message' error, case when w.id is null then m.result end result
from ob.message m
left join ob.work w on w.consumer = m.consumer and w.source = m.source and w.id = m.id
left join ob.lane l on l.consumer = w.consumer and l.key = w.lane
left join ob.handled h on h.n = m.n;

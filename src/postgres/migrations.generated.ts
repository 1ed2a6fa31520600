// Generated from the numbered .sql files by `node scripts/embed-migrations.mjs`: edit those, then run it.

export const MIGRATIONS: readonly { version: number; name: string; sql: string }[] = [
  {
    version: 1,
    name: 'inbox',
    sql: `-- The inbox. \`ob.\` stands for the schema of the box and is replaced when the file runs.

-- Every time in oncebox is the database's, read here and nowhere else. A test schema replaces this one function
-- to move its clock. It is inlined, so predicates on it use their index (a volatile clock could not).
create function ob.now() returns timestamptz language sql stable parallel safe
  as 'select pg_catalog.statement_timestamp()';

-- Raises. Settlements call it in SQL, so that a COMMIT already on its way behind them answers ROLLBACK.
create function ob.refuse(state text, why text) returns boolean language plpgsql volatile
  as $$ begin raise exception using errcode = state, message = why; end $$;

-- The dedup journal: insert-only. A message without a work row is handled.
create table ob.message (
  consumer text collate "C" not null,
  source text collate "C" not null,
  id text collate "C" not null,
  type text collate "C" not null,
  key text collate "C",
  body text not null,
  hash bytea,
  envelope text,
  origin_source text collate "C",
  origin_id text collate "C",
  received_at timestamptz not null default ob.now(),
  result text,
  primary key (consumer, source, id)
) with (fillfactor = 95);
create index message_received on ob.message (consumer, received_at);
create index message_origin on ob.message (origin_id) where origin_id is not null;

-- One narrow row for each message that is not settled yet. \`parked\` rows wait for somebody else: 'failed' for a
-- redelivery from the source, 'dead', 'discarded' and 'quarantined' for a person.
create sequence ob.seq;
create table ob.work (
  consumer text collate "C" not null,
  source text collate "C" not null,
  id text collate "C" not null,
  seq bigint not null default nextval('ob.seq'),
  lane text collate "C",
  due_at timestamptz not null,
  token uuid,
  suspect boolean not null default false,
  attempts int not null default 0,
  parked text,
  reason text,
  error text,
  primary key (consumer, source, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000);
create index work_due on ob.work (consumer, due_at, seq) where lane is null and parked is null;
create index work_lane on ob.work (consumer, lane, seq) where lane is not null and parked is null;
create index work_parked on ob.work (consumer, parked, seq) where parked is not null;

-- One row for each ordering key: what consumers with \`order: 'key'\` claim.
create table ob.lane (
  consumer text collate "C" not null,
  key text collate "C" not null,
  due_at timestamptz not null,
  token uuid,
  suspect boolean not null default false,
  dirty boolean not null default false,
  blocked boolean not null default false,
  primary key (consumer, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index lane_due on ob.lane (consumer, due_at) where due_at < 'infinity';

-- What receivers need to know of consumers that run in other processes.
create table ob.consumer (
  name text collate "C" primary key,
  ordered boolean not null default false,
  retain_ms bigint not null,
  untimed text not null default 'accept',
  paused boolean not null default false
);
create table ob.subscription (
  consumer text collate "C" not null references ob.consumer on delete cascade,
  type text collate "C" not null,
  primary key (consumer, type)
);

-- What cannot be handled, with the reason and the original bytes. It has its own key: a conflict has the key of
-- the message it conflicts with, and \`no-id\` has none.
create table ob.quarantine (
  n bigint generated always as identity primary key,
  consumer text collate "C" not null,
  source text collate "C" not null,
  id text collate "C",
  type text collate "C" not null,
  key text collate "C",
  reason text not null,
  detail text,
  body text,
  bytes bytea,
  hash bytea not null,
  envelope text,
  received_at timestamptz not null default ob.now(),
  discarded text
);
create unique index quarantine_once on ob.quarantine (consumer, source, id, reason, hash) where id is not null;
create index quarantine_reason on ob.quarantine (consumer, reason, n);
create index quarantine_type on ob.quarantine (type) where reason = 'unrouted';

-- Failed attempts, newest last.
create table ob.attempt (
  consumer text collate "C" not null,
  source text collate "C" not null,
  id text collate "C" not null,
  n bigint generated always as identity,
  attempt int not null,
  at timestamptz not null default ob.now(),
  error text not null,
  primary key (consumer, source, id, n)
);

-- What people did: retry, discard, pause, resume, answer.
create table ob.audit (
  n bigint generated always as identity primary key,
  at timestamptz not null default ob.now(),
  action text not null,
  detail text not null
);

-- A transaction that runs handlers holds a row here and its settlement deletes it. Until then the deferred
-- trigger refuses every COMMIT, so a handler that commits on its own changes nothing. Rows never outlive their
-- transaction, so the table needs no log.
create unlogged table ob.open_group (token uuid primary key);
create function ob.refuse_open_group() returns trigger language plpgsql as $$
begin
  if exists (select 1 from ob.open_group g where g.token = new.token) then
    raise exception using errcode = 'OB002', message = 'a handler ended the transaction that oncebox opened';
  end if;
  return null;
end $$;
create constraint trigger refuse_open_group after insert on ob.open_group
  deferrable initially deferred for each row execute function ob.refuse_open_group();
`,
  },
  {
    version: 2,
    name: 'outbox',
    sql: `-- The outbox: events written in the business transaction, published by a relay after it commits.
-- An event goes when its last delivery does, or later if a sink keeps what it has published (\`published_at\`).
create table ob.outbox (
  n bigint generated always as identity primary key,
  source text collate "C" not null,
  id text collate "C" not null,
  type text collate "C" not null,
  key text collate "C",
  body text not null,
  hash bytea,
  envelope text not null,
  created_at timestamptz not null default ob.now(),
  published_at timestamptz,
  unique (source, id)
);
create index outbox_published on ob.outbox (published_at) where published_at is not null;

-- One narrow row for each event and sink still to be published. There is no cursor that a late commit could fall
-- behind: a row that is there is not published yet. \`waiting\` rows are not due: delayed, or backing off after a
-- failure; a relay clears the flag when they are. Rows of the sink '' wait for a sink that wants their type, and are
-- \`waiting\` once none of the known ones did. \`parked\`: 'dead' or 'discarded', until a person decides.
create table ob.delivery (
  n bigint not null,
  sink text collate "C" not null,
  shard int not null,
  key text collate "C",
  due_at timestamptz not null,
  waiting boolean not null default false,
  attempts int not null default 0,
  parked text,
  error text,
  primary key (n, sink)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000);
create index delivery_live on ob.delivery (sink, shard, n) where parked is null and not waiting;
create index delivery_waiting on ob.delivery (sink, due_at) where parked is null and waiting;
create index delivery_parked on ob.delivery (sink, parked, n) where parked is not null;
-- What holds back its key: a failed event until its next try, and one that no sink has been found for yet.
create index delivery_failed on ob.delivery (sink, key) where parked is null and waiting and attempts > 0;
create index delivery_unassigned on ob.delivery (n, key) where sink = '' and parked is null and not waiting;

-- What senders fan out to: sinks that were attached somewhere. \`types\` null means all.
create table ob.sink (
  name text collate "C" primary key,
  types text[] collate "C",
  keep_ms bigint not null default 0
);

-- Leases of relays: 32 shards for each sink. A key lives in one shard, so its events are published one after the other.
create table ob.shard (
  sink text collate "C" not null,
  shard int not null,
  token uuid,
  due_at timestamptz not null default ob.now(),
  primary key (sink, shard)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
`,
  },
  {
    version: 3,
    name: 'effects',
    sql: `-- The journal of calls outside the database: the intent is committed before the call, the outcome after it.
-- An intent without an outcome is a call of which nobody knows whether it happened.
create table ob.effect (
  consumer text collate "C" not null,
  source text collate "C" not null,
  id text collate "C" not null,
  name text collate "C" not null,
  state text not null check (state in ('intent', 'done')),
  result text,
  called_at timestamptz not null default ob.now(),
  done_at timestamptz,
  primary key (consumer, source, id, name)
);
`,
  },
  {
    version: 4,
    name: 'settle',
    sql: `-- What every transaction that runs handlers pays for, made cheap: its guard, and the settlement of a single message.

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

-- Settles one claimed message and takes the guard away: \`{ c, k token, x xid, g guard, s source, i id }\`. Raises OB001 if
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
`,
  },
  {
    version: 5,
    name: 'handled',
    sql: `-- When a message was handled: one narrow row, only ever inserted, in the order of numbers, which is the cheapest thing
-- to add to a settlement (a key of text took four times as long, an update of the journal would write each body again).
-- \`n\` names the row of the journal. Messages that were stored before this column existed have none, and no time.
-- Two steps, so that nothing is rewritten: a column that is added with a default would fill it in everywhere.
alter table ob.message add column n bigint, alter column n set default nextval('ob.seq');
create table ob.handled (n bigint primary key, at timestamptz not null);

-- Settles one claimed message and takes the guard away: \`{ c, k token, x xid, g guard, s source, i id, n }\`. Raises OB001
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

-- What became of every message, for people and their tools: a contract, unlike the tables. \`id\` and \`source\` are the
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
`,
  },
  {
    version: 6,
    name: 'retain',
    sql: `-- What retention has forgotten, what a consumer's processes have said of it, and what a start() asks of its server.

-- Logical replication of all tables refuses updates and deletes of a table without a key.
alter table ob.schema_version add primary key (version);

-- By consumer, what may have been forgotten: messages sent before this time. Written by the statement that deletes, so it
-- holds whatever \`retainMs\` says today, or in another process.
create table ob.forgotten (
  consumer text collate "C" primary key,
  sent_before timestamptz not null
) with (fillfactor = 50);

-- Until now nothing remembered: what the registered options allowed to be deleted may be gone.
insert into ob.forgotten (consumer, sent_before)
select name, ob.now() - (retain_ms - least(300000, retain_ms / 10)) * interval '1 ms' from ob.consumer;

-- Is a message young enough to be judged new? \`at\` is its own time. One without a time, or from the future, is judged by
-- \`untimed\`. Inlined wherever it is used.
create function ob.is_fresh(at timestamptz, retain_ms float8, untimed text, sent_before timestamptz) returns boolean
  language sql stable parallel safe as $$
  select case when at is null or at > ob.now() + least(300000, retain_ms / 10) * interval '1 ms'
              then untimed <> 'quarantine'
              else at >= greatest(ob.now() - (retain_ms - least(300000, retain_ms / 10)) * interval '1 ms', sent_before)
         end $$;

-- Raises 40001 if messages as old as this may have been forgotten by now. Called after their insert: the statement that
-- inserts has judged by its snapshot, and retention may have deleted the row that it would have met since. A volatile
-- function looks with a fresh snapshot, and what it has to see was committed together with the delete.
-- A stronger isolation level has no fresh snapshot. There, a row that has a younger version is known by its \`xmax\`: to
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
-- \`declared\`: who wrote the row last, and when, for people.
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
`,
  },
  {
    version: 7,
    name: 'effect_token',
    sql: `-- Whose intent it is: each call writes a token of its own, so that only the caller takes its intent back. An older
-- version of the library leaves the token null, and moves called_at when it takes an intent over.
-- \`calls\` counts the callers: more than one means that somebody called before, with an outcome that nobody knows.
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
`,
  },
  {
    version: 8,
    name: 'sinks',
    sql: `-- Sinks that are added, changed and removed while relays run. New tables only: senders hold the old ones until they commit.

-- The set of sinks, as one row to lock. Who changes \`ob.sink\` holds it for update and counts \`version\` up; who judges
-- which sinks want an event holds it for share, and judges only if its snapshot has the version that it has locked.
create table ob.sink_set (
  whole boolean primary key default true check (whole),
  version bigint not null default 0
);
insert into ob.sink_set default values;

-- What each running process says of its sinks. A sink wants what any of them says that it wants.
create table ob.sink_declaration (
  sink text collate "C" not null,
  process uuid not null,
  host text not null,
  types text[] collate "C",
  keep_ms bigint not null default 0,
  seen_at timestamptz not null default ob.now(),
  primary key (sink, process)
);

-- Sinks that have still to look at what was put aside, and how far they are, along delivery_waiting. \`holds\`: the sink
-- may want some of it, and publishes nothing before it is through, or new events of a key would go before old ones.
create table ob.catch_up (
  sink text collate "C" primary key,
  holds boolean not null,
  due_at timestamptz not null default '-infinity',
  n bigint not null default 0
);
insert into ob.catch_up (sink, holds) select name, true from ob.sink;
`,
  },
  {
    version: 9,
    name: 'meant',
    sql: `-- A source may be for some consumers alone. What it brought and nobody could take remembers them: a release goes to nobody
-- else. Null for all, and for what was quarantined before, or by an older version.
alter table ob.quarantine add column meant text[] collate "C";
`,
  },
  {
    version: 10,
    name: 'register_sinks',
    sql: `-- Sinks that were removed, and the last event that was sent by then: its transaction may have been open, and commit later.
create table ob.removed_sink (
  sink text collate "C" primary key,
  n bigint not null
);

-- Sinks are registered by one statement: a process that stands still between two would keep the set of sinks locked, and
-- with it all relays. A sink wants what any process says that was seen lately; what was put aside is looked at again, and
-- a sink that wants more than before publishes nothing until it is through. In and out: see REGISTER_SINKS.
-- A volatile function: what follows the lock sees what others have written before it.
create function ob.register_sinks(given jsonb) returns jsonb language plpgsql volatile as $$
declare
  differ jsonb;
begin
  -- Some sessions need settings first, and then the statement is not the whole transaction.
  perform set_config('lock_timeout', '15000', true), set_config('idle_in_transaction_session_timeout', '5000', true);
  perform 1 from ob.sink_set for update;
  delete from ob.removed_sink r where r.sink in (select x->>'n' from jsonb_array_elements(given->'s') x);
  with p as materialized (select given j),
  own as materialized (
    select x->>'n' sink, (x->>'k')::bigint keep_ms, case when jsonb_typeof(x->'t') = 'array'
      then array(select t collate "C" from jsonb_array_elements_text(x->'t') t order by 1) end types
    from p, jsonb_array_elements(j->'s') x
  ),
  others as materialized (
    select d.sink, d.host, d.types, d.keep_ms from p, ob.sink_declaration d
    where d.process <> (j->>'process')::uuid and d.sink in (select sink from own)
      and d.seen_at >= ob.now() - (j->>'ms')::float8 * interval '1 ms'
  ),
  forgotten as (
    delete from ob.sink_declaration d using p
    where d.process <> (j->>'process')::uuid and d.seen_at < ob.now() - (j->>'ms')::float8 * interval '1 ms'
  ),
  declared as (
    insert into ob.sink_declaration as d (sink, process, host, types, keep_ms)
    select sink, (j->>'process')::uuid, j->>'host', types, keep_ms from own, p
    on conflict (sink, process) do update set
      types = excluded.types, keep_ms = excluded.keep_ms, host = excluded.host, seen_at = excluded.seen_at
  ),
  said as (select sink, types, keep_ms from own union all select sink, types, keep_ms from others),
  wanted as materialized (
    select sink, max(keep_ms) keep_ms, case when not bool_or(types is null) then
      array(select distinct unnest(x.types) from said x where x.sink = said.sink order by 1) end types
    from said group by sink
  ),
  before as materialized (select name, types from ob.sink),
  more as materialized (
    select w.sink from wanted w left join before b on b.name = w.sink
    where b.name is null or (b.types is not null and (w.types is null or not w.types <@ b.types))
  ),
  written as (
    insert into ob.sink as k (name, types, keep_ms) select sink, types, keep_ms from wanted order by sink
    on conflict (name) do update set types = excluded.types, keep_ms = excluded.keep_ms
      where (k.types, k.keep_ms) is distinct from (excluded.types, excluded.keep_ms)
    returning 1
  ),
  counted as (update ob.sink_set set version = version + 1 where exists (select 1 from written)),
  shards as (
    insert into ob.shard (sink, shard) select sink, g from own, generate_series(0, 31) g order by sink, g
    on conflict do nothing
  ),
  again as (
    insert into ob.catch_up as c (sink, holds) select sink, sink in (select sink from more) from own, p
    where sink in (select sink from more) or (j->>'again')::boolean
    on conflict (sink) do update set holds = true, due_at = '-infinity', n = 0 where excluded.holds
  )
  select coalesce((select jsonb_agg(jsonb_build_object('sink', o.sink, 'host', o.host, 'types', to_jsonb(o.types)))
    from others o join own using (sink) where o.types is distinct from own.types), '[]') into differ;
  return differ;
end $$;
`,
  },
  {
    version: 11,
    name: 'privileges',
    sql: `-- Who did it. \`actor\` is what the caller says; \`role\` and \`login\` are the database's word, which nobody who may only insert
-- the other columns can forge. Null for what was written before. Two steps: a default would be filled in for old rows.
alter table ob.audit add column actor text, add column role text, add column login text;
alter table ob.audit alter column role set default current_user, alter column login set default session_user;

-- Functions run under the caller's \`search_path\`, where a stranger's function or operator may fit better than the one that is
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
`,
  },
  {
    version: 12,
    name: 'sources',
    sql: `-- What a source may keep in quarantine. New columns and a new table only: rows of an older version have no account, and an
-- older version that runs beside this one opens none.

-- \`via\`: the source whose account the row is on. \`expires_at\`: after that it need not be kept, even if nobody looked at it.
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
`,
  },
  {
    version: 13,
    name: 'rules',
    sql: `-- Messages of several types may come under one id with the same data. The key of the quarantine has no type, and an older
-- version that runs beside this one inserts by that key. So what clashes with a row of another type gets a hash of the
-- fingerprint and its type in place of the fingerprint, which is kept here. Null: the hash is the fingerprint.
alter table ob.quarantine add column fingerprint bytea;

-- How far off the clocks of senders and servers may be. What retention has deleted is older than \`retain\` by this much, and what
-- is younger than \`retain\` less this much may be new: between the two no copy passes for new. Both are inlined.
create function ob.margin(retain_ms float8) returns interval language sql immutable parallel safe
  as $$ select least(300000, retain_ms / 10::float8) * interval '1 ms' $$;

create or replace function ob.is_fresh(at timestamptz, retain_ms float8, untimed text, sent_before timestamptz)
  returns boolean language sql stable parallel safe as $$
  select case when at is null or at > ob.now() + ob.margin(retain_ms) then untimed <> 'quarantine'
              else at >= greatest(ob.now() - (retain_ms * interval '1 ms' - ob.margin(retain_ms)), sent_before)
         end $$;
`,
  },
  {
    version: 14,
    name: 'views',
    sql: `-- What people and their tools may rely on in SQL: three views. The tables behind them are no contract. Columns are only ever
-- added, at the end. No column has a payload: no body, no envelope, no result.
--
-- They run with the rights of their owner, so that a role may be given the views and nothing else. They hide columns and no
-- rows: nothing that a query brings along gets to see more than it selects, so there is no need for a barrier.

-- It had the results of handlers, which are payloads.
drop view ob.messages;

-- The state of every message, as \`admin.messages\` has it. One part for each way in which a state is found, because a filter on
-- it then leaves the other parts out: \`state\` is a constant in most of them. Each is there twice: once for messages that are
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

-- How far behind each consumer and each sink is: the age of the oldest message or event that is due, as \`admin.status\` has it,
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
`,
  },
  {
    version: 15,
    name: 'reading',
    sql: `-- The figures of the database that metrics show: read by one process at a time, for all of them. One row. Who reads holds its
-- lock for as long as that takes, so a process that dies while it reads is replaced at once.
create table ob.reading (
  one boolean primary key default true check (one),
  taken_at timestamptz not null default '-infinity',
  due_at timestamptz not null default '-infinity',
  figures text not null default '[]'
) with (fillfactor = 50);
insert into ob.reading default values;
`,
  },
  {
    version: 16,
    name: 'consumers',
    sql: `-- Consumers that are removed. A new table only: processes of an older version write nothing to it, and are known by what they hold.

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
`,
  },
  {
    version: 17,
    name: 'failures',
    sql: `-- What is known of failures: how long an attempt took and where it ran, what failures have in common, and when each was. New
-- columns only, all of them nullable: rows of an older version have none, and the processes fill in what they can by and by.

-- \`worker\`: host and process id.
alter table ob.attempt add column ms float8, add column worker text;

-- Of \`error\`: what it has in common with others (see src/fingerprint.ts), and when it was recorded.
alter table ob.work add column fingerprint text collate "C", add column failed_at timestamptz;

-- Groups of failures, counted without a look at the rows, and the messages of each in their order. Those without a fingerprint
-- come last, and are found as fast.
create index work_failure on ob.work (consumer, parked, fingerprint, seq) include (failed_at)
  where parked is not null and error is not null;

-- Which message blocks a key: of those that wait for a person, the one that failed last.
create index work_front on ob.work (consumer, lane, failed_at desc nulls last, seq desc)
  where lane is not null and parked in ('dead', 'quarantined');
create index lane_blocked on ob.lane (consumer, key) where blocked;

-- An older version that runs beside this one records a failure over another, and knows nothing of fingerprints: what it leaves
-- behind is the one before. Whoever knows sets the time, too.
create function ob.forget_fingerprint() returns trigger language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
begin
  new.fingerprint := null;
  new.failed_at := ob.now();
  return new;
end $$;
create trigger work_fingerprint before update of error on ob.work for each row
  when (new.error is distinct from old.error and new.failed_at is not distinct from old.failed_at)
  execute function ob.forget_fingerprint();
`,
  },
  {
    version: 18,
    name: 'bulk_and_minutes',
    sql: `-- What the dashboard shows of the last days, and changes of many messages. New tables only: processes of an older version write
-- nothing to them, and miss nothing.

-- What happened within a minute, by consumer. Consumer '' is the whole box: it is there for every minute in which a process wrote
-- something down, so a consumer without a row had nothing to do then. Processes add what they have counted. \`pending\` and what
-- follows is what one of them read at the end of the minute; null if none did, and \`lag_ms\` also of a consumer that is paused.
create table ob.minute (
  consumer text collate "C" not null,
  at timestamptz not null,
  received bigint not null default 0,
  handled bigint not null default 0,
  failed bigint not null default 0,
  duplicates bigint not null default 0,
  pending bigint,
  lag_ms bigint,
  dead bigint,
  quarantined bigint,
  primary key (consumer, at)
);
create index minute_at on ob.minute (at);

-- A retry or a discard of many messages. A process carries it for as long as it holds the lease; when that is over, another does.
-- \`query\`, \`zone\` and \`read_at\` are what was asked, and \`counted\` is how far messages had come when they were counted: from these
-- any process finds the same messages. \`plan\` is where the walk stands, written in the transactions of the changes. \`recent\`: of the last ones that have run, 1 for each that failed again.
create table ob.bulk (
  id uuid primary key,
  verb text not null check (verb in ('retry', 'discard')),
  state text not null default 'running' check (state in ('running', 'done', 'cancelled', 'stopped', 'failed')),
  query text not null,
  zone int not null,
  read_at bigint not null,
  counted text not null,
  secret boolean not null,
  total bigint not null,
  most bigint not null,
  per_second float8,
  actor text,
  reason text,
  done bigint not null default 0,
  skipped bigint not null default 0,
  handled bigint not null default 0,
  failed_again bigint not null default 0,
  following bigint not null default 0,
  recent text not null default '',
  plan text,
  cancelled boolean not null default false,
  problem text,
  started_at timestamptz not null default ob.now(),
  ended_at timestamptz,
  follow_until timestamptz not null default '-infinity',
  token uuid,
  lease_until timestamptz not null default '-infinity',
  carriers int not null default 0
) with (fillfactor = 50);
create index bulk_started on ob.bulk (started_at);

-- Messages that were made pending again and have not run since: what becomes of them is counted, and then they are forgotten.
create table ob.bulk_message (
  bulk uuid not null references ob.bulk on delete cascade,
  n bigint generated always as identity,
  consumer text collate "C" not null,
  source text collate "C" not null,
  id text collate "C" not null,
  primary key (bulk, n)
);
`,
  },
  {
    version: 19,
    name: 'bodies',
    sql: `-- Messages that are stored as they come have no fingerprint: most are never compared with anything, and to make it took longer than
-- the rest of what a receiver does. \`unhashed\`: it is that of the body, made when a copy comes that has another text. A version
-- before this one takes such a row for one whose body is not to be compared, so that it knows copies, and misses conflicts.
alter table ob.message add column unhashed boolean;

-- Bodies beyond two kilobytes are compressed. LZ4 takes a fraction of the time of PostgreSQL's own method, where the server has it; what
-- is stored already stays as it is, and both are read.
do $$ begin
  alter table ob.message alter column body set compression lz4;
  alter table ob.outbox alter column body set compression lz4;
exception when feature_not_supported then
  null;
end $$;
`,
  },
  {
    version: 20,
    name: 'secret',
    sql: `-- Secrets of this box, made here and told to nobody: by \`fingerprints\` the dashboard hides what failures have in common from those
-- who may not see their words. A new table: processes of an older version do not look at it.
create table ob.secret (
  name text primary key,
  value text not null
);
insert into ob.secret values ('fingerprints', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));
`,
  },
  {
    version: 21,
    name: 'places',
    sql: `-- Where the row of the journal was when its work was stored. A claim looks there first, and by key only where it finds another
-- message or none: rows that an older version has stored, and those that have moved since, by a dump or VACUUM FULL.
alter table ob.work add column journal_place tid;
`,
  },
  {
    version: 22,
    name: 'sink_version',
    sql: `-- The version of the set of sinks, as a number that every snapshot sees as it is now. A sender whose snapshot has another one in
-- \`ob.sink_set\` does not know the sinks there are: its events wait for a relay to judge who wants them. Drawn by whoever changes
-- the sinks, under the lock of the set. Nothing is locked that senders hold.
create sequence ob.sink_version;
select nextval('ob.sink_version') from generate_series(0, (select version from ob.sink_set));
update ob.sink_set set version = pg_sequence_last_value('ob.sink_version');

-- As before, but for the version.
create or replace function ob.register_sinks(given jsonb) returns jsonb language plpgsql volatile
  set search_path = pg_catalog, pg_temp as $$
declare
  differ jsonb;
  changed boolean;
  known bigint;
  next bigint;
begin
  -- Some sessions need settings first, and then the statement is not the whole transaction.
  perform set_config('lock_timeout', '15000', true), set_config('idle_in_transaction_session_timeout', '5000', true);
  select version into known from ob.sink_set for update;
  delete from ob.removed_sink r where r.sink in (select x->>'n' from jsonb_array_elements(given->'s') x);
  with p as materialized (select given j),
  own as materialized (
    select x->>'n' sink, (x->>'k')::bigint keep_ms, case when jsonb_typeof(x->'t') = 'array'
      then array(select t collate "C" from jsonb_array_elements_text(x->'t') t order by 1) end types
    from p, jsonb_array_elements(j->'s') x
  ),
  others as materialized (
    select d.sink, d.host, d.types, d.keep_ms from p, ob.sink_declaration d
    where d.process <> (j->>'process')::uuid and d.sink in (select sink from own)
      and d.seen_at >= ob.now() - (j->>'ms')::float8 * interval '1 ms'
  ),
  forgotten as (
    delete from ob.sink_declaration d using p
    where d.process <> (j->>'process')::uuid and d.seen_at < ob.now() - (j->>'ms')::float8 * interval '1 ms'
  ),
  declared as (
    insert into ob.sink_declaration as d (sink, process, host, types, keep_ms)
    select sink, (j->>'process')::uuid, j->>'host', types, keep_ms from own, p
    on conflict (sink, process) do update set
      types = excluded.types, keep_ms = excluded.keep_ms, host = excluded.host, seen_at = excluded.seen_at
  ),
  said as (select sink, types, keep_ms from own union all select sink, types, keep_ms from others),
  wanted as materialized (
    select sink, max(keep_ms) keep_ms, case when not bool_or(types is null) then
      array(select distinct unnest(x.types) from said x where x.sink = said.sink order by 1) end types
    from said group by sink
  ),
  before as materialized (select name, types from ob.sink),
  more as materialized (
    select w.sink from wanted w left join before b on b.name = w.sink
    where b.name is null or (b.types is not null and (w.types is null or not w.types <@ b.types))
  ),
  written as (
    insert into ob.sink as k (name, types, keep_ms) select sink, types, keep_ms from wanted order by sink
    on conflict (name) do update set types = excluded.types, keep_ms = excluded.keep_ms
      where (k.types, k.keep_ms) is distinct from (excluded.types, excluded.keep_ms)
    returning 1
  ),
  shards as (
    insert into ob.shard (sink, shard) select sink, g from own, generate_series(0, 31) g order by sink, g
    on conflict do nothing
  ),
  again as (
    insert into ob.catch_up as c (sink, holds) select sink, sink in (select sink from more) from own, p
    where sink in (select sink from more) or (j->>'again')::boolean
    on conflict (sink) do update set holds = true, due_at = '-infinity', n = 0 where excluded.holds
  )
  select coalesce((select jsonb_agg(jsonb_build_object('sink', o.sink, 'host', o.host, 'types', to_jsonb(o.types)))
    from others o join own using (sink) where o.types is distinct from own.types), '[]'),
    exists (select 1 from written) into differ, changed;
  -- They differ where a change was rolled back, or made by an older version.
  if changed or known is distinct from pg_sequence_last_value('ob.sink_version') then
    loop
      next := nextval('ob.sink_version');
      exit when next > known;
    end loop;
    update ob.sink_set set version = next;
  end if;
  return differ;
end $$;

-- Whoever may send may compare, and whoever may change the set of sinks may count: roles need nothing run again for that. Where
-- nothing was granted yet there is no list of rights, and the owner has them all.
do $$
declare
  role record;
begin
  for role in
    select distinct case when right_to.grantee = 0 then 'public' else right_to.grantee::regrole::text end name,
      right_to.privilege_type from (
      select (aclexplode(coalesce(c.relacl, acldefault('r', c.relowner)))).* from pg_class c where c.oid in ('ob.outbox'::regclass, 'ob.sink_set'::regclass)
      union all
      select (aclexplode(a.attacl)).* from pg_attribute a where a.attrelid = 'ob.outbox'::regclass) right_to
    where right_to.privilege_type in ('INSERT', 'UPDATE')
  loop
    execute format('grant select (version) on %s to %s', 'ob.sink_set'::regclass, role.name);
    execute format('grant select on sequence %s to %s', 'ob.sink_version'::regclass, role.name);
    if role.privilege_type = 'UPDATE' then
      execute format('grant usage on sequence %s to %s', 'ob.sink_version'::regclass, role.name);
    end if;
  end loop;
end $$;
`,
  },
  {
    version: 23,
    name: 'receive_one',
    sql: `-- Stores one message for every subscribed consumer: what the statement RECEIVE does, for what most callers have, one message with
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
`,
  },
  {
    version: 24,
    name: 'sink_minutes',
    sql: `-- What was published within a minute, by sink. It was in \`ob.minute\` so far, under U+001F and the name of the sink.
create table ob.sink_minute (
  sink text collate "C" not null,
  at timestamptz not null,
  published bigint not null,
  primary key (sink, at)
);
create index sink_minute_at on ob.sink_minute (at);
insert into ob.sink_minute select substr(consumer, 2), at, handled from ob.minute where starts_with(consumer, E'\\x1f');
delete from ob.minute where starts_with(consumer, E'\\x1f');

-- The rights of \`ob.minute\`, so that roles need nothing run again. Where nothing was granted yet there is no list of rights, and the
-- owner has them all.
do $$
declare
  given record;
begin
  for given in
    select right_to.privilege_type || coalesce(' (' || quote_ident(right_to.attname) || ')', '') what,
      case when right_to.grantee = 0 then 'public' else right_to.grantee::regrole::text end name
    from (
      select (aclexplode(c.relacl)).*, null::name attname from pg_class c where c.oid = 'ob.minute'::regclass
      union all
      select (aclexplode(a.attacl)).*, a.attname from pg_attribute a where a.attrelid = 'ob.minute'::regclass and a.attname = 'at') right_to
  loop
    execute format('grant %s on %s to %s', given.what, 'ob.sink_minute'::regclass, given.name);
  end loop;
end $$;
`,
  },
  {
    version: 25,
    name: 'free_lane',
    sql: `-- The message that blocks a key: of those of it that wait for a person, the one that failed last. Null: none does. Whoever frees a
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
`,
  },
]

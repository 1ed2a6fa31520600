-- What the dashboard shows of the last days, and changes of many messages. New tables only: processes of an older version write
-- nothing to them, and miss nothing.

-- What happened within a minute, by consumer. Consumer '' is the whole box: it is there for every minute in which a process wrote
-- something down, so a consumer without a row had nothing to do then. Processes add what they have counted. `pending` and what
-- follows is what one of them read at the end of the minute; null if none did, and `lag_ms` also of a consumer that is paused.
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
-- `query`, `zone` and `read_at` are what was asked, and `counted` is how far messages had come when they were counted: from these
-- any process finds the same messages. `plan` is where the walk stands, written in the transactions of the changes. `recent`: of the last ones that have run, 1 for each that failed again.
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

-- The outbox: events written in the business transaction, published by a relay after it commits.
-- An event goes when its last delivery does, or later if a sink keeps what it has published (`published_at`).
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
-- behind: a row that is there is not published yet. `waiting` rows are not due: delayed, or backing off after a
-- failure; a relay clears the flag when they are. Rows of the sink '' wait for a sink that wants their type, and are
-- `waiting` once none of the known ones did. `parked`: 'dead' or 'discarded', until a person decides.
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

-- What senders fan out to: sinks that were attached somewhere. `types` null means all.
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

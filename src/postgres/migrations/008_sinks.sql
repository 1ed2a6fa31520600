-- Sinks that are added, changed and removed while relays run. New tables only: senders hold the old ones until they commit.

-- The set of sinks, as one row to lock. Who changes `ob.sink` holds it for update and counts `version` up; who judges
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

-- Sinks that have still to look at what was put aside, and how far they are, along delivery_waiting. `holds`: the sink
-- may want some of it, and publishes nothing before it is through, or new events of a key would go before old ones.
create table ob.catch_up (
  sink text collate "C" primary key,
  holds boolean not null,
  due_at timestamptz not null default '-infinity',
  n bigint not null default 0
);
insert into ob.catch_up (sink, holds) select name, true from ob.sink;

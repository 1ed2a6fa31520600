-- The journal of calls outside the database: the intent is committed before the call, the outcome after it.
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

-- The outbox: events written in the business transaction, published by a relay after it commits.
create table ob.outbox (
  n bigint generated always as identity primary key,
  source text collate "C" not null,
  id text collate "C" not null,
  type text collate "C" not null,
  key text collate "C",
  body text not null,
  envelope text,
  created_at timestamptz not null default ob.now(),
  due_at timestamptz not null default ob.now(),
  unique (source, id)
);

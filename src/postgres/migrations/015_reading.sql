-- The figures of the database that metrics show: read by one process at a time, for all of them. One row. Who reads holds its
-- lock for as long as that takes, so a process that dies while it reads is replaced at once.
create table ob.reading (
  one boolean primary key default true check (one),
  taken_at timestamptz not null default '-infinity',
  due_at timestamptz not null default '-infinity',
  figures text not null default '[]'
) with (fillfactor = 50);
insert into ob.reading default values;

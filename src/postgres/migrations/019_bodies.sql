-- Messages that are stored as they come have no fingerprint: most are never compared with anything, and to make it took longer than
-- the rest of what a receiver does. `unhashed`: it is that of the body, made when a copy comes that has another text. A version
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

-- Secrets of this box, made here and told to nobody: by `fingerprints` the dashboard hides what failures have in common from those
-- who may not see their words. A new table: processes of an older version do not look at it.
create table ob.secret (
  name text primary key,
  value text not null
);
insert into ob.secret values ('fingerprints', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));

-- What was published within a minute, by sink. It was in `ob.minute` so far, under U+001F and the name of the sink.
create table ob.sink_minute (
  sink text collate "C" not null,
  at timestamptz not null,
  published bigint not null,
  primary key (sink, at)
);
create index sink_minute_at on ob.sink_minute (at);
insert into ob.sink_minute select substr(consumer, 2), at, handled from ob.minute where starts_with(consumer, E'\x1f');
delete from ob.minute where starts_with(consumer, E'\x1f');

-- The rights of `ob.minute`, so that roles need nothing run again. Where nothing was granted yet there is no list of rights, and the
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

-- What is known of failures: how long an attempt took and where it ran, what failures have in common, and when each was. New
-- columns only, all of them nullable: rows of an older version have none, and the processes fill in what they can by and by.

-- `worker`: host and process id.
alter table ob.attempt add column ms float8, add column worker text;

-- Of `error`: what it has in common with others (see src/fingerprint.ts), and when it was recorded.
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

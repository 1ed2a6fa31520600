-- Messages of several types may come under one id with the same data. The key of the quarantine has no type, and an older
-- version that runs beside this one inserts by that key. So what clashes with a row of another type gets a hash of the
-- fingerprint and its type in place of the fingerprint, which is kept here. Null: the hash is the fingerprint.
alter table ob.quarantine add column fingerprint bytea;

-- How far off the clocks of senders and servers may be. What retention has deleted is older than `retain` by this much, and what
-- is younger than `retain` less this much may be new: between the two no copy passes for new. Both are inlined.
create function ob.margin(retain_ms float8) returns interval language sql immutable parallel safe
  as $$ select least(300000, retain_ms / 10::float8) * interval '1 ms' $$;

create or replace function ob.is_fresh(at timestamptz, retain_ms float8, untimed text, sent_before timestamptz)
  returns boolean language sql stable parallel safe as $$
  select case when at is null or at > ob.now() + ob.margin(retain_ms) then untimed <> 'quarantine'
              else at >= greatest(ob.now() - (retain_ms * interval '1 ms' - ob.margin(retain_ms)), sent_before)
         end $$;

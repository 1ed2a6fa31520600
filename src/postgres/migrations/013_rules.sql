-- Messages of several types may come under one id with the same data. The key of the quarantine has no type, and an older
-- version that runs beside this one inserts by that key. So what clashes with a row of another type gets a hash of the
-- fingerprint and its type in place of the fingerprint, which is kept here. Null: the hash is the fingerprint.
alter table ob.quarantine add column fingerprint bytea;

-- Where the row of the journal was when its work was stored. A claim looks there first, and by key only where it finds another
-- message or none: rows that an older version has stored, and those that have moved since, by a dump or VACUUM FULL.
alter table ob.work add column journal_place tid;

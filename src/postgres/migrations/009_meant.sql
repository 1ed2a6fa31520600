-- A source may be for some consumers alone. What it brought and nobody could take remembers them: a release goes to nobody
-- else. Null for all, and for what was quarantined before, or by an older version.
alter table ob.quarantine add column meant text[] collate "C";

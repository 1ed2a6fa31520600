-- Who did it. `actor` is what the caller says; `role` and `login` are the database's word, which nobody who may only insert
-- the other columns can forge. Null for what was written before. Two steps: a default would be filled in for old rows.
alter table ob.audit add column actor text, add column role text, add column login text;
alter table ob.audit alter column role set default current_user, alter column login set default session_user;

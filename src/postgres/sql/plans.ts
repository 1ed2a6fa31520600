/** Statements that look after the planner. */
import { statement } from '../statement.js'

/**
 * Which tables have outgrown the statistics that their plans were made with? Tables of up to 64 pages are read as fast in one way as in another. Only an owner may analyze. As a join it would ask
 * the file system for the size of every table in the database.
 */
export const OUTGROWN = statement<readonly (readonly [name: string, qualified: string])[], { name: string }>(`
select e->>0 name from jsonb_array_elements($1::text::jsonb) e
cross join lateral (select * from pg_class c where c.oid = (select to_regclass(e->>1)::oid) limit 1) c
where pg_relation_size(c.oid) / current_setting('block_size')::int > 4 * greatest(c.relpages, 16)
  and pg_has_role(c.relowner, 'USAGE')`)

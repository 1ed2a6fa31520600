/** Which keys have the most waiting. */
import { statement, type Flag } from '../statement.js'
import { messageOf } from './rules.js'

export interface DepthRow {
  readonly consumer: string
  readonly lane: string
  /** A worker has it in hand. */
  readonly held: Flag
  /** What waits, with what runs, `most` at most. */
  readonly n: string
  /** The first of them. */
  readonly source: string
  readonly id: string
  readonly key: string | null
  /** When it was received, in ms. */
  readonly at: string
  /** They were looked for in a part of the table. */
  readonly sampled: Flag
}

/**
 * Keys that move and have more than one message waiting, the deepest first. They are looked for in `pages` pages of the table, the
 * same ones each time, or in all of them if there are no more; those found are counted by the index. A key with a share of what
 * waits that is worth a look has messages on some of these pages. Indexes: work_lane, and the primary keys.
 */
export const DEEPEST = statement<{ consumer: string | null; pages: number; most: number; limit: number }, DepthRow>(`
with input as materialized (
  select given->>'consumer' collate "C" consumer, (given->>'most')::int most, (given->>'limit')::int shown,
    (given->>'pages')::float8 pages from (select $1::text::jsonb given) x
),
found as materialized (
  select w.consumer, w.lane from ob.work w tablesample system ((
    select least(100::float8, 100::float8 * pages * current_setting('block_size')::float8
      / greatest(1::bigint, pg_relation_size('ob.work'::regclass))::float8)
    from input)) repeatable (1)
  where w.lane is not null and w.parked is null and (w.consumer = (select consumer from input)
    or (select consumer from input) is null)
  group by w.consumer, w.lane order by count(*) desc, w.consumer, w.lane limit 3 * (select shown from input)
)
select f.consumer, f.lane, (l.token is not null and l.due_at > ob.now())::text held, depth.n::text, first.source, first.id, m.key,
  (extract(epoch from m.received_at) * 1000.0)::bigint::text "at",
  (pg_relation_size('ob.work'::regclass)::float8 > (select pages from input) * current_setting('block_size')::float8)::text sampled
from found f
cross join lateral (select * from ob.lane l where l.consumer = f.consumer and l.key = f.lane and not l.blocked limit 1) l
cross join lateral (select count(*) n from (select 1 from ob.work w
  where w.consumer = f.consumer and w.lane = f.lane and w.parked is null order by w.seq limit (select most from input)) x) depth
cross join lateral (select w.consumer, w.source, w.id from ob.work w
  where w.consumer = f.consumer and w.lane = f.lane and w.parked is null order by w.seq limit 1) first
${messageOf('first')}
where depth.n > 1
order by depth.n desc, m.received_at, f.consumer, f.lane limit (select shown from input)`)

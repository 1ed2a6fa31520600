/** Walks through failures: those of one kind, and those in front of a blocked key. How they work is in walk.ts. */
import { frontOf, parkingConsumers } from './rules.js'
import { foundWork } from './search.js'
import { bothWays, CRITERIA, MAX_BIGINT } from './walk.js'

/** What waits for somebody because of failures with these fingerprints. Its position: the sequence number. Index: work_failure. */
export const ALIKE = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
${parkingConsumers()},
examined as materialized (
  select w.*, row_number() over (order by seq ${order}) ord
  from (
    select w.* from consumer cross join (select unnest(states) state from input) wanted
    cross join (select unnest(fingerprints) collate "C" fingerprint from input) kind cross join lateral (
      select * from ob.work w
      where w.consumer = consumer.name and w.parked = case wanted.state when 'pending' then 'failed' else wanted.state end
        and w.error is not null and w.fingerprint = kind.fingerprint
        and w.seq ${past} coalesce((select (given->>'position')::bigint from input), ${number})
        and w.seq <= coalesce((select (given->>'until')::bigint from input), ${MAX_BIGINT})
      order by w.seq ${order} limit (select most from input)) w
    order by w.seq ${order} limit (select most from input)) w
)
${foundWork()}`,
)

/**
 * Messages that block their key. It sorts all of them, so it is for a number of keys that is known to be small; more are found
 * faster among what is parked. Its position: the sequence number. Indexes: lane_blocked, work_front.
 */
export const FRONTS = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
consumer(name) as (
  select coalesce((select consumer from input),
    (select l.consumer from ob.lane l where l.blocked order by l.consumer limit 1)) collate "C"
  union all
  select (select l.consumer from ob.lane l where l.blocked and l.consumer > consumer.name order by l.consumer limit 1)
  from consumer where consumer.name is not null and (select consumer from input) is null
),
examined as materialized (
  select w.*, row_number() over (order by seq ${order}) ord
  from (
    select w.* from consumer cross join lateral (
      select l.consumer, l.key from ob.lane l where l.consumer = consumer.name and l.blocked order by l.key limit 100000) l
    cross join lateral (${frontOf('l.consumer', 'l.key')}) w
    where w.seq ${past} coalesce((select (given->>'position')::bigint from input), ${number})
      and w.seq <= coalesce((select (given->>'until')::bigint from input), ${MAX_BIGINT})
    order by w.seq ${order} limit (select most from input)) w
)
${foundWork()}`,
)

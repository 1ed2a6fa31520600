/** Since when messages wait for a person. */
import { statement } from '../statement.js'
import { parkingConsumers, quarantinePairs } from './rules.js'

/**
 * Since when the first of those that are dead, or in quarantine, is: of each consumer, and each reason, the first `limit` that came
 * are looked at. Null: none of these is known to be. Indexes: work_parked, quarantine_reason.
 */
export const PARKED_SINCE = statement<{ limit: number }, { what: 'dead' | 'quarantined'; since: string | null }>(`
with recursive input as materialized (
  select null::text collate "C" consumer, ($1::text::jsonb->>'limit')::int most
),
${parkingConsumers()},
${quarantinePairs('kind')},
parked as materialized (
  select w.parked what, w.failed_at since from consumer cross join (values ('dead'), ('quarantined')) state(name)
  cross join lateral (
    select w.parked, w.failed_at from ob.work w where w.consumer = consumer.name and w.parked = state.name and w.parked is not null
    order by w.seq limit (select most from input)) w
  union all
  select 'quarantined', q.received_at from kind cross join lateral (
    select q.received_at, q.discarded from ob.quarantine q
    where q.consumer = kind.consumer and q.reason >= kind.reason and q.reason <= kind.reason
    order by q.reason, q.n limit (select most from input)) q
  where q.discarded is null
)
select p.what, (extract(epoch from min(p.since)) * 1000.0)::bigint::text since from parked p group by p.what`)

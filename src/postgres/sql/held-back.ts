/** Pieces of the statements that read events: what has to wait, and which keys need not. */

/** More events than that without a sink go first: to tell their keys apart would take too long. */
const MOST_UNASSIGNED = 1_000

const NO_ATTEMPTS = [0, 100].map((first) => Array.from({ length: 100 }, (_, at) => -(first + at)))

/**
 * The delivery `f` failed and is not due again. The lists say nothing new, and are checked for no row of delivery_failed, whose
 * condition implies them: they make a row that is found otherwise look dear to the planner. Where it takes such rows for few, as in a
 * table that was never analyzed, or not since so many wait, all indexes of what waits look alike to it, and it took one that leads through
 * everything that waits for the sink, for each key that was looked up.
 */
const FAILED = `f.parked is null and f.waiting and f.attempts > 0
      and ${NO_ATTEMPTS.map((list) => `f.attempts <> all ('{${list.join(',')}}')`).join(' and ')}`

/**
 * What has to wait. `behind`: the sink has still to look at events that were put aside; where it `holds`, they may be
 * older than all that it has. `unassigned`: events that were sent before there was a sink and still need one, few enough
 * to be hashed by any server. `failing`: whether there are events that failed and are not due again. `open`: whether there
 * is anything to be published now.
 */
export const HELD_BACK = `
behind as materialized (select c.holds from input, ob.catch_up c where c.sink = given->>'sink'),
unassigned as materialized (
  select u.key from ob.delivery u where u.sink = '' and u.parked is null and not u.waiting limit ${MOST_UNASSIGNED + 1}
),
open as materialized (
  select (select count(*) from unassigned) <= ${MOST_UNASSIGNED} and not exists (select 1 from behind where holds) it
),
failing as materialized (
  select f.key from ob.delivery f
  where f.sink = (select given->>'sink' from input) and f.key is not null and ${FAILED}
  order by f.key limit 1
)`

/**
 * Whether the key of a delivery `d` need not wait: none of its events failed and is not due again, nor still needs a sink.
 * Keys that failed may be a hundred thousand, so each is looked up, if there are any. `is not true` tells the planner
 * nothing: of a join, of `exists` or of `is null` it would expect few events to be left, and read the whole backlog to
 * sort it. A range of one key in place of an equation, because only delivery_failed then has the order.
 */
export const FREE = `
(d.key is null or d.key not in (select key from unassigned where key is not null)
  and (not exists (select 1 from failing) or (
    select true from ob.delivery f
    where f.sink = d.sink and f.key >= d.key and f.key <= d.key and ${FAILED}
    order by f.key limit 1) is not true))`

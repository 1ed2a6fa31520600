/**
 * Statements that walk through messages, newest or oldest first, by keyset.
 *
 * Each examines at most `n` rows of one index from a position on, and answers with those that fit the criteria. The
 * last row examined is always in the answer, marked by `fits`, so that the walk goes on behind it: no statement scans,
 * however few rows fit.
 *
 * In: `{ n, lean, states, pos, until, consumer, source, type: [], key, ids: [], reason, error, before, after }`; what
 * is absent does not restrict. `lean` leaves the bodies out. `until` ends a walk that goes upwards.
 */

export interface Walk {
  readonly newest: string
  readonly oldest: string
}

/** `past` compares a row with the position of the walk, which begins at `time` or `number`. */
export interface Way {
  readonly past: '<' | '>'
  readonly order: 'desc' | 'asc'
  readonly time: string
  readonly number: string
}

export const MAX_BIGINT = '9223372036854775807'

/** The same statement in both directions. */
export function bothWays(statement: (way: Way) => string): Walk {
  return {
    newest: statement({ past: '<', order: 'desc', time: 'infinity', number: MAX_BIGINT }),
    oldest: statement({ past: '>', order: 'asc', time: '-infinity', number: '-1' }),
  }
}

export const CRITERIA = `p as materialized (
  select j, (j->>'n')::int n, coalesce((j->>'lean')::boolean, false) lean,
    array(select jsonb_array_elements_text(j->'states')) states,
    j->>'consumer' collate "C" consumer, j->>'source' source, j->>'key' key, j->>'reason' reason, j->>'error' error,
    case when j->'type' is not null then array(select jsonb_array_elements_text(j->'type')) end types,
    (j->>'before')::timestamptz before, (j->>'after')::timestamptz after
  from (select $1::text::jsonb j) x
)`

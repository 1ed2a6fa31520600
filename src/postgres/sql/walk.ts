/**
 * Statements that walk through messages, newest or oldest first, by keyset.
 *
 * Each examines at most `limit` rows of one index from a position on, and answers with those that fit the criteria. The
 * last row examined is always in the answer, marked by `fits`, so that the walk goes on behind it: no statement scans,
 * however few rows fit.
 */
import type { QuarantineReason, State } from '../../message.js'
import { statement, type Flag, type Statement } from '../statement.js'

/** What is absent does not restrict. */
export interface Criteria {
  readonly limit: number
  /** Leaves the bodies out. */
  readonly lean?: boolean
  /** Leaves out bodies that could not be decoded. */
  readonly decoded?: boolean
  readonly states?: readonly State[]
  readonly position?: string | readonly string[] | undefined
  /** Ends a walk that goes upwards. */
  readonly until?: string | undefined
  readonly consumer?: string | undefined
  readonly source?: string | undefined
  readonly type?: readonly string[] | undefined
  readonly key?: string | undefined
  readonly ids?: readonly string[] | undefined
  readonly reason?: string | undefined
  readonly error?: string | undefined
  readonly fingerprints?: readonly string[] | undefined
  readonly blocking?: boolean | undefined
  readonly before?: string | undefined
  readonly after?: string | undefined
  /** Leaves out what has come, or has failed or was handled for the last time, since then. */
  readonly asOf?: string | undefined
}

/** A row that was examined. The columns that are missing in some belong to what is found in other places. */
export interface FoundRow {
  readonly fits: Flag
  /** Its position among those examined, from 1. */
  readonly ord: string
  /** Of an event: the sink. */
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly origin_source?: string | null
  readonly origin_id?: string | null
  readonly type: string
  readonly key: string | null
  readonly body: string | null
  readonly bytes?: string | null
  readonly envelope: string | null
  readonly state: State
  readonly reason?: QuarantineReason | null
  readonly detail?: string | null
  readonly error?: string | null
  readonly attempts?: string | null
  readonly result?: string | null
  readonly handled?: string | null
  readonly received: string
  /** Received, in microseconds. */
  readonly at?: string
  readonly seq?: string | null
  readonly n?: string
}

export interface Walk {
  readonly newest: Statement<Criteria, FoundRow>
  readonly oldest: Statement<Criteria, FoundRow>
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
export function bothWays(text: (way: Way) => string): Walk {
  return {
    newest: statement(text({ past: '<', order: 'desc', time: 'infinity', number: MAX_BIGINT })),
    oldest: statement(text({ past: '>', order: 'asc', time: '-infinity', number: '-1' })),
  }
}

export const CRITERIA = `input as materialized (
  select given, (given->>'limit')::int most, coalesce((given->>'lean')::boolean, false) lean,
    coalesce((given->>'decoded')::boolean, false) decoded,
    array(select jsonb_array_elements_text(given->'states')) states,
    given->>'consumer' collate "C" consumer, given->>'source' source, given->>'key' key, given->>'reason' reason, given->>'error' error,
    case when given->'type' is not null then array(select jsonb_array_elements_text(given->'type')) end types,
    case when given->'fingerprints' is not null then array(select jsonb_array_elements_text(given->'fingerprints')) end fingerprints,
    coalesce((given->>'blocking')::boolean, false) blocking,
    (given->>'before')::timestamptz before, (given->>'after')::timestamptz after,
    (given->>'asOf')::timestamptz as_of
  from (select $1::text::jsonb given) x
)`

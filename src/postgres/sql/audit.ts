/** Statements of the audit: what people did, and what the box did on its own that somebody may ask about. */
import { statement } from '../statement.js'

/** Writes down what was done. `actor` is who says so, or null. The server adds who is logged in. */
export const AUDIT = statement<{ action: string; detail: string; actor: string | null }>(`
insert into ob.audit (action, detail, actor)
select given->>'action', given->>'detail', given->>'actor' from (select $1::text::jsonb given) input`)

export interface AuditRow {
  readonly n: string
  readonly at: string
  readonly action: string
  readonly detail: string
  readonly actor: string | null
  readonly role: string | null
  readonly login: string | null
}

/** A page, newest first, of the rows before a number. Index: the primary key. */
export const READ_AUDIT = statement<{ before: string; limit: number }, AuditRow>(`
with input as materialized (select ($1::text::jsonb->>'before')::bigint before, ($1::text::jsonb->>'limit')::int most)
select a.n::text, (extract(epoch from a.at) * 1000.0)::bigint::text "at", a.action, a.detail, a.actor, a.role, a.login
from input cross join lateral (
  select * from ob.audit a where a.n < input.before order by a.n desc limit (select most from input)
) a order by a.n desc`)

export interface SwitchRow {
  readonly at: string
  readonly action: 'pause' | 'resume'
  /** JSON. */
  readonly detail: string
}

/** When consumers were paused and resumed, oldest first, among the last `limit` rows. Index: the primary key. */
export const READ_SWITCHES = statement<{ limit: number }, SwitchRow>(`
with input as materialized (select ($1::text::jsonb->>'limit')::int most),
recent as materialized (select * from ob.audit a order by a.n desc limit (select most from input))
select (extract(epoch from a.at) * 1000.0)::bigint::text "at", a.action, a.detail
from recent a where a.action in ('pause', 'resume') order by a.n`)

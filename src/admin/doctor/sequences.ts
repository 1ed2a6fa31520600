/** Sequences: whether they are behind the numbers in their tables. */
import { sequenceRepairs } from '../../postgres/server.js'
import { SEQUENCES_BEHIND, type BehindRow } from '../../postgres/sql/server.js'
import { check, family } from './check.js'

const SEQUENCE_BEHIND = check<readonly BehindRow[]>({
  code: 'sequence-behind',
  severity: 'serious',
  why: 'New rows would get numbers that others have: they are refused, or a message counts as handled that is not. As after a switch-over by logical replication, which copies no sequences.',
  find: (behind) =>
    sequenceRepairs(behind).map(({ sequence, columns, statement }) => ({
      what: `sequence ${sequence} is behind ${columns}`,
      figures: { sequence },
      fix: `${statement};`,
    })),
})

export const SEQUENCES = family('the sequences of the schema', ({ ask }) => ask(SEQUENCES_BEHIND, null), [
  SEQUENCE_BEHIND,
])

/** Sequences: whether they are behind the numbers in their tables. */
import { SEQUENCES_BEHIND, type BehindRow } from '../../postgres/sql/server.js'
import { check, family } from './check.js'

const SEQUENCE_BEHIND = check<readonly BehindRow[]>({
  code: 'sequence-behind',
  severity: 'serious',
  why: 'New rows would get numbers that others have, and be refused: as after a switch-over by logical replication, which copies no sequences.',
  find: (behind) =>
    behind.map(({ sequence, numbered, col }) => ({
      what: `sequence ${sequence} is behind ${numbered}.${col}`,
      figures: { sequence },
      fix: `select setval('${sequence}', (select max(${col}) from ${numbered}));`,
    })),
})

export const SEQUENCES = family('the sequences of the schema', ({ ask }) => ask(SEQUENCES_BEHIND, null), [
  SEQUENCE_BEHIND,
])

/**
 * What a handler may send while its neighbours use the same transaction. Their statements come in between, so whatever one
 * statement leaves for the next is not the handler's own: a setting, a savepoint, a cursor, the last value of a sequence. And
 * no lock keeps those apart who share it.
 */
import { OnceboxError } from '../../errors.js'

const PLAIN = /^\s*(?:select|insert|update|delete|with|merge|values)\s/i
/** Behind one command comes another. */
const SEVERAL = /;\s*\S/
const LEAVES = /set_config|pg_(?:try_)?advisory|lastval|currval|u&"/i
const LOCKS = /\bfor\s+(?:no\s+key\s+|key\s+)?(?:update|share)\b/i

/** True if it makes no difference to this statement, nor to others, what runs before and after it. */
export function runsBeside(text: unknown): boolean {
  return typeof text === 'string' && PLAIN.test(text) && !SEVERAL.test(text) && !LEAVES.test(text) && !LOCKS.test(text)
}

export function sentBesideOthers(): OnceboxError {
  return new OnceboxError(
    'GROUP_ABANDONED',
    'the handler sent what cannot run beside its neighbours (savepoints, settings, locks, cursors, several commands at ' +
      'once), so it runs again, one after the other',
  )
}

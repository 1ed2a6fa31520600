/**
 * What a handler may send while its neighbours use the same transaction. Their statements come in between, so whatever one
 * statement leaves for the next is not the handler's own: a setting, a savepoint, a cursor, the last value of a sequence. And
 * no lock keeps those apart who share it.
 */
import { OnceboxError } from '../../errors.js'
import { withoutComments } from './sql-text.js'

const PLAIN = /^\s*(?:select|insert|update|delete|with|merge|values)\s/i
/** Behind one command comes another. */
const SEVERAL = /;\s*\S/
const LEAVES = /set_config|pg_settings|pg_(?:try_)?advisory|lastval|currval|u&"/i
/** A number may end where the word begins. */
const LOCKS = /(?<![a-z_])for\s+(?:no\s+key\s+|key\s+)?(?:update|share)\b/i
const COMMENT = /--|\/\*/

/** True if it makes no difference to this statement, nor to others, what runs before and after it. */
export function runsBeside(text: unknown): boolean {
  if (typeof text !== 'string' || !PLAIN.test(text) || tiesToOthers(text)) return false
  // A comment is as good as a blank between two words. Few texts have one.
  return !COMMENT.test(text) || !tiesToOthers(withoutComments(text))
}

function tiesToOthers(text: string): boolean {
  return SEVERAL.test(text) || LEAVES.test(text) || LOCKS.test(text)
}

export function sentBesideOthers(): OnceboxError {
  return new OnceboxError(
    'GROUP_ABANDONED',
    'the handler sent what cannot run beside its neighbours (savepoints, settings, locks, cursors, several commands at ' +
      'once), so it runs again, one after the other',
  )
}

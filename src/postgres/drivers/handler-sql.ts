/**
 * What a handler may not send on the transaction it was lent: its end belongs to oncebox, and what it does to the
 * session would stay on a pooled connection. Looks at the first words of every statement in the text: once the
 * transaction is over, whatever the handler sends next would commit on its own. An end that hides deeper (strings with
 * backslashes under an old setting) is found by the transaction's status and by the settlement.
 *
 * Of the functions that change a session it knows set_config and the advisory locks, where they are called by name. One
 * that is called inside a function or a DO block, or whose third argument is a parameter, is not found.
 */
import { OnceboxError } from '../../errors.js'
import { firstWords, nextStatement, quotedEnd, skipBlanks, wordEnd } from './sql-text.js'

/** The error to refuse `text` with, or undefined. */
export function refusal(text: unknown): OnceboxError | undefined {
  if (typeof text !== 'string') return undefined
  const error = refusalOf(firstWords(text, 0)) ?? lastingCall(text)
  // The body of a function in standard SQL has statements, and an END, of its own.
  if (error || !text.includes(';') || /\bbegin\s+atomic\b/i.test(text)) return error
  for (let at = nextStatement(text, 0); at < text.length; at = nextStatement(text, at)) {
    const later = refusalOf(firstWords(text, at))
    if (later) return later
  }
  return undefined
}

function refusalOf([first, second, third, fourth]: readonly string[]): OnceboxError | undefined {
  switch (first) {
    case 'BEGIN':
    case 'START':
    case 'COMMIT':
    case 'END':
    case 'ABORT':
      return handlerCommitted(first)
    case 'ROLLBACK': {
      const next = second === 'WORK' || second === 'TRANSACTION' ? third : second
      return next === 'TO' ? undefined : handlerCommitted(first)
    }
    case 'PREPARE':
      return second === 'TRANSACTION' ? handlerCommitted('PREPARE TRANSACTION') : undefined
    case 'SET':
      if (second === 'CONSTRAINTS' && third === 'ALL' && fourth === 'IMMEDIATE') return constraintsChecked()
      return second === 'LOCAL' || second === 'TRANSACTION' || second === 'CONSTRAINTS'
        ? undefined
        : sessionChanged(first)
    case 'DEALLOCATE':
      return second === 'ALL' || (second === 'PREPARE' && third === 'ALL')
        ? sessionChanged('DEALLOCATE ALL')
        : undefined
    case 'RESET':
    case 'DISCARD':
    case 'LISTEN':
    case 'UNLISTEN':
    case 'LOAD':
      return sessionChanged(first)
    default:
      return undefined
  }
}

/** A call whose effect outlives the transaction. One pass, whatever is nested in what. */
function lastingCall(text: string): OnceboxError | undefined {
  if (!/set_config|advisory_lock/i.test(text)) return undefined
  const open: { readonly name: string; commas: number }[] = []
  let name = ''
  for (let at = skipBlanks(text, 0, true); at < text.length; at = skipBlanks(text, at, true)) {
    const end = wordEnd(text, at)
    if (end > at) {
      name = text.slice(at, end).toLowerCase()
      at = end
      continue
    }
    const past = quotedEnd(text, at)
    const inner = open.at(-1)
    if (text[at] === '(') {
      if (LASTING_LOCK.test(name)) return lockKept(name)
      open.push({ name, commas: 0 })
    } else if (text[at] === ')') open.pop()
    else if (text[at] === ',' && inner && ++inner.commas === 2 && inner.name === 'set_config') {
      if (isFalse(text, skipBlanks(text, at + 1, false))) return settingKept()
    }
    name = ''
    at = past > at ? past : at + 1
  }
  return undefined
}

const LASTING_LOCK = /^pg_(?:try_)?advisory_lock(?:_shared)?$/
const FALSE = /(?:false\b|'(?:f|false|n|no|off|0)')/iy

function isFalse(text: string, at: number): boolean {
  FALSE.lastIndex = at
  return FALSE.test(text)
}

function handlerCommitted(command: string): OnceboxError {
  return new OnceboxError(
    'HANDLER_COMMITTED',
    `a handler sent ${command}, but its transaction is oncebox's to begin and end: return to commit, throw to roll back, ` +
      'and use SAVEPOINT for a part that may fail',
  )
}

/** The guard of the transaction is a deferred constraint too, and holds at its end only. */
function constraintsChecked(): OnceboxError {
  return new OnceboxError(
    'HANDLER_COMMITTED',
    "a handler sent SET CONSTRAINTS ALL IMMEDIATE, which checks oncebox's own as if the transaction ended: name yours",
  )
}

function sessionChanged(command: string): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    `a handler sent ${command}, which outlives its transaction on a pooled connection: use SET LOCAL, ` +
      'or a connection of your own',
  )
}

function settingKept(): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    'a handler called set_config(…, false), which outlives its transaction on a pooled connection: pass true',
  )
}

function lockKept(name: string): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    `a handler called ${name}, whose lock outlives its transaction on a pooled connection: use ` +
      name.replace('advisory_lock', 'advisory_xact_lock'),
  )
}

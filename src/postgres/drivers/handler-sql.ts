/**
 * What a handler may not send on the transaction it was lent: its end belongs to oncebox, and session settings
 * would stay on a pooled connection. Looks at the first words of every statement in the text: once the transaction is
 * over, whatever the handler sends next would commit on its own. What hides deeper (`set_config`, strings with
 * backslashes under an old setting) is found by the transaction's status and by the settlement.
 */
import { OnceboxError } from '../../errors.js'

/** The error to refuse `text` with, or undefined. */
export function refusal(text: unknown): OnceboxError | undefined {
  if (typeof text !== 'string') return undefined
  const error = refusalOf(firstWords(text, 0))
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

/** The first four words in upper case, past white space, comments and empty statements. */
function firstWords(text: string, start: number): string[] {
  const words: string[] = []
  let at = start
  while (words.length < 4) {
    at = skipBlanks(text, at, words.length === 0)
    const end = wordEnd(text, at)
    if (end === at) break
    words.push(text.slice(at, end).toUpperCase())
    at = end
  }
  return words
}

function skipBlanks(text: string, start: number, andSemicolons: boolean): number {
  let at = start
  for (;;) {
    const char = text[at]
    if (char === undefined) return at
    if (char <= ' ' || char === '\ufeff' || (andSemicolons && char === ';')) at += 1
    else if (char === '-' && text[at + 1] === '-') at = lineEnd(text, at)
    else if (char === '/' && text[at + 1] === '*') at = commentEnd(text, at)
    else return at
  }
}

function lineEnd(text: string, start: number): number {
  let at = start
  while (at < text.length && text[at] !== '\n' && text[at] !== '\r') at += 1
  return at
}

/** Block comments nest in PostgreSQL. */
function commentEnd(text: string, start: number): number {
  let depth = 0
  let at = start
  while (at < text.length) {
    if (text[at] === '/' && text[at + 1] === '*') {
      depth += 1
      at += 2
    } else if (text[at] === '*' && text[at + 1] === '/') {
      depth -= 1
      at += 2
      if (depth === 0) return at
    } else at += 1
  }
  return at
}

/** The start of the next statement. Empty ones are skipped at once: one by one, a million would take for ever. */
function nextStatement(text: string, start: number): number {
  return statementEnd(text, skipBlanks(text, start, true))
}

/** Past the semicolon that ends the statement, or the end of the text. */
function statementEnd(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    const char = text[at]!
    if (char === ';') return at + 1
    if (char === "'") at = quoteEnd(text, at, isEscapeString(text, at))
    else if (char === '"') at = quoteEnd(text, at, false)
    else if (char === '$') at = dollarEnd(text, at)
    else if (char === '-' && text[at + 1] === '-') at = lineEnd(text, at)
    else if (char === '/' && text[at + 1] === '*') at = commentEnd(text, at)
    else at += 1
  }
  return at
}

/** Past the quote that closes the one at `start`. A doubled one opens the next piece at once, so it needs no care. */
function quoteEnd(text: string, start: number, escapes: boolean): number {
  const quote = text[start]
  let at = start + 1
  while (at < text.length && text[at] !== quote) at += escapes && text[at] === '\\' ? 2 : 1
  return at + 1
}

/** E'…', in which a backslash escapes the quote. */
function isEscapeString(text: string, at: number): boolean {
  return (text[at - 1] === 'e' || text[at - 1] === 'E') && !isWordChar(text.charCodeAt(at - 2))
}

const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y

/** Past a string in dollar quotes, or past the dollar of a parameter or a name. */
function dollarEnd(text: string, start: number): number {
  DOLLAR_QUOTE.lastIndex = start
  const before = text.charCodeAt(start - 1)
  const tag = isWordChar(before) || before >= 0x80 ? undefined : DOLLAR_QUOTE.exec(text)?.[0]
  if (tag === undefined) return start + 1
  const end = text.indexOf(tag, start + tag.length)
  return end < 0 ? text.length : end + tag.length
}

function wordEnd(text: string, start: number): number {
  let at = start
  while (isWordChar(text.charCodeAt(at))) at += 1
  return at
}

function isWordChar(code: number): boolean {
  return (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 95
}

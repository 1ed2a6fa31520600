/**
 * What a handler may not send on the transaction it was lent: its end belongs to oncebox, and what it does to the
 * session would stay on a pooled connection. Looks at the first words of every statement in the text: once the
 * transaction is over, whatever the handler sends next would commit on its own. An end that hides deeper (strings with
 * backslashes under an old setting) is found by the transaction's status and by the settlement.
 *
 * Of the functions that change a session it knows set_config and the advisory locks, where they are called by name, and
 * the view pg_settings, whose update calls set_config. One that is called inside a function or a DO block, or whose third
 * argument is a parameter, is not found.
 */
import { OnceboxError } from '../../errors.js'
import { firstWords, nextToken, type Token } from './sql-text.js'

/** The error to refuse `text` with, or undefined. */
export function refusal(text: unknown): OnceboxError | undefined {
  if (typeof text !== 'string') return undefined
  const first = PLAIN.test(text) ? undefined : refusalOf(firstWords(text, 0))
  // Nearly every text ends here. Escapes may hide a name.
  if (first || !(text.includes(';') || LASTING.test(text))) return first
  const calls = new Calls()
  const updates = new Updates()
  const statements = new Statements()
  for (let at = 0, token = nextToken(text, at); token; token = nextToken(text, at)) {
    const error =
      calls.read(token) ??
      updates.read(token) ??
      (statements.beginWith(token) ? refusalOf(firstWords(text, at)) : undefined)
    if (error) return error
    at = token.end
  }
  return undefined
}

/** How nearly every text begins, which is looked at for each statement of each handler. */
const PLAIN = /^\s*(?:select|insert|update|delete|with|merge)\s/i
const LASTING = /set_config|pg_settings|advisory_lock|u&"/i

/** Where statements begin. */
class Statements {
  /** The words BEGIN ATOMIC and CASE that wait for their END, in the body of a function in standard SQL. */
  #depth = 0
  #first: string | undefined
  #before: Token | undefined

  /** True for the first token of a statement. A semicolon inside the body of a function ends none. */
  beginWith(token: Token): boolean {
    const before = this.#before
    this.#before = token
    if (token.kind === 'sign' && token.text === ';') {
      if (this.#depth === 0) this.#first = undefined
      return false
    }
    const begins = this.#first === undefined
    this.#first ??= token.kind === 'word' ? token.text : ''
    if (token.kind !== 'word' || isLabel(before)) return begins
    if (token.text === 'atomic' && isWord(before, 'begin') && this.#first === 'create') this.#depth = 1
    else if (this.#depth > 0 && token.text === 'case') this.#depth += 1
    else if (this.#depth > 0 && token.text === 'end') this.#depth -= 1
    return begins
  }
}

/** What follows is a name, whatever it reads. */
function isLabel(before: Token | undefined): boolean {
  return isWord(before, 'as') || (before?.kind === 'sign' && before.text === '.')
}

function isWord(token: Token | undefined, text: string): boolean {
  return token?.kind === 'word' && token.text === text
}

const ENDS =
  /^(?:BEGIN|START|COMMIT|END|ABORT|PREPARE TRANSACTION|ROLLBACK(?!(?: WORK| TRANSACTION)? TO(?: |$)))(?= |$)/
const CHANGES_SESSION =
  /^(?:SET(?! (?:LOCAL|TRANSACTION|CONSTRAINTS)(?: |$))|DEALLOCATE(?: PREPARE)? ALL|RESET|DISCARD|LISTEN|UNLISTEN|LOAD)(?= |$)/

function refusalOf(words: readonly string[]): OnceboxError | undefined {
  const start = words.join(' ')
  const [end] = ENDS.exec(start) ?? []
  if (end) return handlerCommitted(end)
  const [change] = CHANGES_SESSION.exec(start) ?? []
  if (change) return sessionChanged(change)
  return start === 'SET CONSTRAINTS ALL IMMEDIATE' ? constraintsChecked() : undefined
}

/** Calls whose effect outlives the transaction, whatever is nested in what. */
class Calls {
  readonly #open: { readonly name: string; argument: number; tokens: Token[] }[] = []
  #name = ''

  read(token: Token): OnceboxError | undefined {
    const name = this.#name
    this.#name = token.kind === 'word' || token.kind === 'name' ? token.text : ''
    const inner = this.#open.at(-1)
    const sign = token.kind === 'sign' ? token.text : ''
    if (sign === '(') {
      if (LASTING_LOCK.test(name)) return lockKept(name)
      this.#open.push({ name, argument: 0, tokens: [] })
      return undefined
    }
    if (sign !== ',' && sign !== ')') {
      // As much as it takes for a name, an arrow and a value.
      if (inner && inner.tokens.length < 4) inner.tokens.push(token)
      return undefined
    }
    const error = inner?.name === 'set_config' && isKept(inner.argument, inner.tokens) ? settingKept() : undefined
    if (sign === ')') this.#open.pop()
    else if (inner) {
      inner.argument += 1
      inner.tokens = []
    }
    return error
  }
}

/** What follows the word UPDATE: the view by which settings are changed, whoever names its schema. */
class Updates {
  #named = false

  read(token: Token): OnceboxError | undefined {
    const { kind, text } = token
    if (isWord(token, 'update')) this.#named = true
    else if (this.#named) {
      if ((kind === 'word' || kind === 'name') && text === 'pg_settings') return settingUpdated()
      // ONLY, a parenthesis, and the schema with its dot come before the name.
      this.#named = kind === 'sign' ? text === '(' || text === '.' : isWord(token, 'only') || isSchema(token)
    }
    return undefined
  }
}

function isSchema({ kind, text }: Token): boolean {
  return (kind === 'word' || kind === 'name') && text === 'pg_catalog'
}

const LASTING_LOCK = /^pg_(?:try_)?advisory_lock(?:_shared)?$/
/** PostgreSQL takes any beginning of these that is not the beginning of another. */
const FALSE = /^\s*(?:f|fa|fal|fals|false|n|no|of|off|0)\s*$/i

/** Whether it is the third argument of set_config, by place or by name, and false. */
function isKept(argument: number, tokens: readonly Token[]): boolean {
  const [name, colon, arrow, named] = tokens
  const isNamed = arrow?.kind === 'sign' && `${colon!.text}${arrow.text}`.match(/^(=>|:=)$/) !== null
  const value = isNamed ? named : name
  if (isNamed ? name!.text !== 'is_local' : argument !== 2) return false
  return value !== undefined && (isWord(value, 'false') || (value.kind === 'string' && FALSE.test(value.text)))
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

function settingUpdated(): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    'a handler updated pg_settings, which outlives its transaction on a pooled connection: use SET LOCAL',
  )
}

function lockKept(name: string): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    `a handler called ${name}, whose lock outlives its transaction on a pooled connection: use ` +
      name.replace('advisory_lock', 'advisory_xact_lock'),
  )
}

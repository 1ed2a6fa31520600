/**
 * Reads SQL as PostgreSQL's own scanner does, as far as it takes to tell words, names in quotes, strings and comments
 * apart. Every step is linear.
 */

export interface Token {
  /** word: a name or key word. name: one in double quotes. Other signs come one by one; numbers and parameters as 'other'. */
  readonly kind: 'word' | 'name' | 'string' | 'sign' | 'other'
  /** A word in lower case; a name or a string without its quotes; a sign as it is. */
  readonly text: string
  /** Past the token. */
  readonly end: number
}

const BLANK = /[\0- \ufeff]+|--[^\n\r]*/y
const COMMENT_EDGE = /\/\*|\*\//g
/** A dollar sign may be inside of a word, and then opens no string. */
const WORD = /[A-Za-z_\u0080-\ufefe\uff00-\uffff][\w$\u0080-\ufefe\uff00-\uffff]*/y
const NUMBER = /[\d$][\w$\u0080-\ufefe\uff00-\uffff]*/y
const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y
/** What stands before the quote of E'…', U&'…' and U&"…". */
const PREFIX = /e(?=')|u&(?=['"])/iy
/** Where a quoted text may end. One that is doubled, or escaped in an E'…', stands for itself. */
const QUOTES = { "'": /''|'/g, '"': /""|"/g, escaped: /\\[^]|''|'/g }

/** The next token, past white space and comments; undefined at the end of the text. */
export function nextToken(text: string, start: number): Token | undefined {
  const at = skipBlanks(text, start)
  if (at >= text.length) return undefined
  const prefix = found(PREFIX, text, at).toLowerCase()
  const quote = text[at + prefix.length]
  if (quote === "'" || quote === '"') {
    const token = quoted(text, at + prefix.length, QUOTES[prefix === 'e' ? 'escaped' : quote])
    return prefix === 'u&' ? unicode(text, token) : token
  }
  const tag = found(DOLLAR_QUOTE, text, at)
  if (tag !== '') return between(text, at + tag.length, text.indexOf(tag, at + tag.length), tag)
  const word = found(WORD, text, at)
  if (word !== '') return { kind: 'word', text: word.toLowerCase(), end: at + word.length }
  const number = found(NUMBER, text, at)
  if (number !== '') return { kind: 'other', text: '', end: at + number.length }
  return { kind: 'sign', text: text[at]!, end: at + 1 }
}

/** The first four words in upper case, past white space, comments and empty statements. */
export function firstWords(text: string, start: number): string[] {
  const words: string[] = []
  for (let token = nextToken(text, start); token && words.length < 4; token = nextToken(text, token.end)) {
    if (token.kind === 'word') words.push(token.text.toUpperCase())
    else if (token.text !== ';' || token.kind !== 'sign' || words.length > 0) break
  }
  return words
}

/** The text with a blank for each comment. What stands in quotes is none. */
export function withoutComments(text: string): string {
  let bare = ''
  for (let at = 0, token = nextToken(text, at); token; token = nextToken(text, at)) {
    const start = skipBlanks(text, at)
    bare += (start > at ? ' ' : '') + text.slice(start, token.end)
    at = token.end
  }
  return bare
}

/** What the pattern finds at this very place, or nothing. */
function found(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0] ?? ''
}

function skipBlanks(text: string, start: number): number {
  for (let at = start; ;) {
    const end = text.startsWith('/*', at) ? commentEnd(text, at) : at + found(BLANK, text, at).length
    if (end === at) return at
    at = end
  }
}

/** Block comments nest in PostgreSQL. */
function commentEnd(text: string, start: number): number {
  COMMENT_EDGE.lastIndex = start
  for (let depth = 0, edge = COMMENT_EDGE.exec(text); edge; edge = COMMENT_EDGE.exec(text)) {
    depth += edge[0] === '/*' ? 1 : -1
    if (depth === 0) return COMMENT_EDGE.lastIndex
  }
  return text.length
}

/** From the opening quote to the one that closes it. */
function quoted(text: string, open: number, quotes: RegExp): Token {
  quotes.lastIndex = open + 1
  let close = quotes.exec(text)
  while (close && close[0].length > 1) close = quotes.exec(text)
  return between(text, open + 1, close ? close.index : -1, text[open]!)
}

/** A string or name from `start` to what closes it; one that is never closed has the rest of the text. */
function between(text: string, start: number, close: number, quote: string): Token {
  const content = text.slice(start, close < 0 ? undefined : close)
  const end = close < 0 ? text.length : close + quote.length
  return { kind: quote === '"' ? 'name' : 'string', text: content.replaceAll(quote + quote, quote), end }
}

/** U&"…": four or six hexadecimal digits after a backslash, or after another character that UESCAPE names. */
function unicode(text: string, { kind, text: raw, end }: Token): Token {
  const clause = found(UESCAPE, text, skipBlanks(text, end))
  const at = clause === '' ? end : skipBlanks(text, skipBlanks(text, end) + clause.length)
  const named = clause === '' ? '' : found(ESCAPE, text, at)
  const decoded = raw.replace(UNICODE, (whole, sign: string, six?: string, four?: string) =>
    sign === (named[1] ?? '\\') ? fromHex(six ?? four!) : whole,
  )
  return { kind, text: decoded, end: named === '' ? end : at + named.length }
}

const UESCAPE = /uescape(?![\w$\u0080-\uffff])/iy
const ESCAPE = /'[^']'/y
const UNICODE = /([^\w\s'"])(?:\+([\da-f]{6})|([\da-f]{4}))/gi

function fromHex(digits: string): string {
  const code = parseInt(digits, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}

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

/** The next token, past white space and comments; undefined at the end of the text. */
export function nextToken(text: string, start: number): Token | undefined {
  const at = skipBlanks(text, start)
  const char = text[at]
  if (char === undefined) return undefined
  if (char === "'") return quoted(text, at, at, 'string')
  if (char === '"') return quoted(text, at, at, 'name')
  if (char === '$') return dollar(text, at)
  if (isWordStart(text.charCodeAt(at))) return word(text, at)
  if (isDigit(text.charCodeAt(at))) return { kind: 'other', text: '', end: wordEnd(text, at) }
  return { kind: 'sign', text: char, end: at + 1 }
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

function skipBlanks(text: string, start: number): number {
  let at = start
  for (;;) {
    const char = text[at]
    if (char === undefined) return at
    if (char <= ' ' || char === '\ufeff') at += 1
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

/** A word, or the string or name whose prefix it is: E'…', U&'…', U&"…". */
function word(text: string, start: number): Token {
  const end = wordEnd(text, start)
  if (end === start + 1) {
    const letter = text[start]!.toLowerCase()
    if (letter === 'e' && text[end] === "'") return quoted(text, start, end, 'string')
    const quote = text[end + 1]
    if (letter === 'u' && text[end] === '&' && (quote === "'" || quote === '"')) return unicode(text, end + 1)
  }
  return { kind: 'word', text: text.slice(start, end).toLowerCase(), end }
}

/** From the opening quote at `open` to the one that closes it; a doubled one stands for itself. */
function quoted(text: string, start: number, open: number, kind: 'string' | 'name'): Token {
  const quote = text[open]!
  const escapes = open > start
  let at = open + 1
  let from = at
  let content = ''
  for (; at < text.length; at += 1) {
    if (escapes && text[at] === '\\') at += 1
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) break
      content += text.slice(from, at + 1)
      at += 1
      from = at + 1
    }
  }
  return { kind, text: content + text.slice(from, at), end: Math.min(at + 1, text.length) }
}

/** U&"…": four or six hexadecimal digits after a backslash, or after another character that UESCAPE names. */
function unicode(text: string, open: number): Token {
  const { kind, text: raw, end } = quoted(text, open, open, text[open] === '"' ? 'name' : 'string')
  const clause = /^uescape$/i.test(text.slice(skipBlanks(text, end), skipBlanks(text, end) + 7))
  const escape = clause ? nextToken(text, skipBlanks(text, end) + 7) : undefined
  const char = escape?.kind === 'string' ? escape.text : '\\'
  const decoded = raw.replace(UNICODE, (whole, sign: string, six?: string, four?: string) =>
    sign === char ? fromHex(six ?? four!) : whole,
  )
  return { kind, text: decoded, end: clause && escape ? escape.end : end }
}

const UNICODE = /([^\w\s'"])(?:\+([\da-f]{6})|([\da-f]{4}))/gi

function fromHex(digits: string): string {
  const code = parseInt(digits, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}

const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y

/** A string in dollar quotes, or a parameter. */
function dollar(text: string, start: number): Token {
  DOLLAR_QUOTE.lastIndex = start
  const tag = DOLLAR_QUOTE.exec(text)?.[0]
  if (tag === undefined) return { kind: 'other', text: '', end: wordEnd(text, start + 1) }
  const close = text.indexOf(tag, start + tag.length)
  const end = close < 0 ? text.length : close
  return { kind: 'string', text: text.slice(start + tag.length, end), end: close < 0 ? end : end + tag.length }
}

/** A dollar sign may be inside of a word, and then opens no string. */
function wordEnd(text: string, start: number): number {
  let at = start
  for (let code = text.charCodeAt(at); isWordStart(code) || isDigit(code) || code === 36;) code = text.charCodeAt(++at)
  return at
}

function isWordStart(code: number): boolean {
  const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95
  return isLetter || (code >= 0x80 && code !== 0xfeff)
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

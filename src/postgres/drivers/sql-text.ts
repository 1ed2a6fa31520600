/** Reads SQL just well enough to tell statements, words, strings and comments apart. Every step is linear. */

/** The first four words in upper case, past white space, comments and empty statements. */
export function firstWords(text: string, start: number): string[] {
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

export function skipBlanks(text: string, start: number, andSemicolons: boolean): number {
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
export function nextStatement(text: string, start: number): number {
  return statementEnd(text, skipBlanks(text, start, true))
}

/** Past the semicolon that ends the statement, or the end of the text. */
function statementEnd(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    if (text[at] === ';') return at + 1
    const past = quotedEnd(text, at)
    at = past > at ? past : at + 1
  }
  return at
}

/** Past the string, quoted name or comment that begins at `at`; `at` itself if none does. */
export function quotedEnd(text: string, at: number): number {
  const char = text[at]
  if (char === "'") return quoteEnd(text, at, isEscapeString(text, at))
  if (char === '"') return quoteEnd(text, at, false)
  if (char === '$') return dollarEnd(text, at)
  if (char === '-' && text[at + 1] === '-') return lineEnd(text, at)
  if (char === '/' && text[at + 1] === '*') return commentEnd(text, at)
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

export function wordEnd(text: string, start: number): number {
  let at = start
  while (isWordChar(text.charCodeAt(at))) at += 1
  return at
}

function isWordChar(code: number): boolean {
  return (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 95
}

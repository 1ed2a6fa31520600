/**
 * Visible: a text in parts, so that what a reader would not see, or what would change how the rest reads, is shown as a mark
 * with its number. Everything that comes from a message goes through here: types, keys and errors may be as hostile as bodies.
 */

export interface Plain {
  readonly kind: 'text'
  readonly text: string
}

export interface Mark {
  readonly kind: 'mark'
  /** Such as U+202E. */
  readonly text: string
  /** In words, where it has some that help. */
  readonly words: string
}

export type Part = Plain | Mark

/**
 * Controls but line break and tab, lone surrogates, separators of lines, and what is ignored when it is drawn, such as
 * overrides.
 */
const HIDDEN =
  /(?!\p{Variation_Selector}|[\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\ufff9-\ufffb]/gu

const WORDS: Readonly<Record<number, string>> = {
  0x00: 'NUL', 0x07: 'bell', 0x08: 'backspace', 0x0d: 'carriage return', 0x1b: 'escape', 0x7f: 'delete', 0xad: 'soft hyphen',
  0x200b: 'zero width space', 0x200c: 'zero width non-joiner', 0x200d: 'zero width joiner', 0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark', 0x2028: 'line separator', 0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding', 0x202c: 'pop directional formatting', 0x202d: 'left-to-right override',
  0x202e: 'right-to-left override', 0x2060: 'word joiner', 0x2066: 'left-to-right isolate', 0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate', 0x2069: 'pop directional isolate', 0xfeff: 'byte order mark',
} // prettier-ignore

/** An emoji of several people is joined by what is hidden elsewhere. */
const JOINER = 0x200d
const PICTURE = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f/u

export function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  let from = 0
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    const code = found.codePointAt(0)!
    if (code === JOINER && isInPicture(text, index)) continue
    if (index > from) parts.push({ kind: 'text', text: text.slice(from, index) })
    parts.push(markOf(code))
    from = index + found.length
  }
  if (from < text.length) parts.push({ kind: 'text', text: text.slice(from) })
  return parts
}

/** The same as one text, where there is no place for marks: titles, labels, options. */
export function visible(text: string): string {
  return partsOf(text).map((part) => (part.kind === 'mark' ? `[${part.text}]` : part.text)).join('') // prettier-ignore
}

function markOf(code: number): Mark {
  const text = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
  const isSurrogate = code >= 0xd800 && code <= 0xdfff
  return { kind: 'mark', text, words: WORDS[code] ?? (isSurrogate ? 'half of a character' : 'not visible') }
}

function isInPicture(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 2), at)
  return PICTURE.test(before) && PICTURE.test(text.slice(at + 1, at + 3))
}

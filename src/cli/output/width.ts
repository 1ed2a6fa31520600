/** How many columns of a terminal text takes, and text that takes no more than so many. */

/** Those of East Asian Width W and F that are met, and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
const NONE = /^[\p{M}\u200c\u200d]$/u

export function widthOf(text: string): number {
  // Most text is ASCII.
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (const character of text) width += NONE.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

/** The beginning of the text, with an ellipsis if there was more. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width < 1) return ''
  let taken = ''
  let left = width - 1
  for (const character of text) {
    left -= widthOf(character)
    if (left < 0) break
    taken += character
  }
  return `${taken}…`
}

/** Words in lines of at most so many columns. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

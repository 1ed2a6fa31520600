/** Bytes that are no text, as people look at bytes: sixteen in a row, their numbers and their letters. */

export interface HexLine {
  readonly at: string
  readonly hex: string
  readonly letters: string
}

const WIDTH = 16

export function hexLines(base64: string, most: number): readonly HexLine[] {
  const binary = atob(base64.slice(0, Math.ceil(most / 3) * 4)).slice(0, most)
  const lines: HexLine[] = []
  for (let at = 0; at < binary.length; at += WIDTH) {
    const codes = [...binary.slice(at, at + WIDTH)].map((character) => character.charCodeAt(0))
    lines.push({
      at: at.toString(16).padStart(6, '0'),
      hex: codes.map((code) => code.toString(16).padStart(2, '0')).join(' ').padEnd(WIDTH * 3 - 1),
      letters: codes.map((code) => (code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : '·')).join(''),
    }) // prettier-ignore
  }
  return lines
}

/** Chords: which shortcut a key stands for, after the one before it. */

export interface Key {
  readonly key: string
  readonly shift: boolean
  /** Control, Alt or Meta: those belong to the browser. */
  readonly modified: boolean
  /** The reader types into something. */
  readonly typing: boolean
}

/** `g o`, `Shift+d`, `/`: as they are shown. */
export function chordOf({ key, shift, modified, typing }: Key, before: string): string | undefined {
  if (modified || typing || ['Shift', 'Control', 'Alt', 'Meta', 'Dead', 'Unidentified'].includes(key)) return undefined
  const own = shift && /^[a-z]$/i.test(key) ? `Shift+${key.toLowerCase()}` : key
  return before === 'g' && /^[a-z]$/.test(own) ? `g ${own}` : own
}

/**
 * Ids, types, errors and bodies come from strangers, and a terminal obeys some characters: it moves its cursor, changes its
 * title, writes to the clipboard, or shows text in another order than it has. Those are written as `\x1b` or `\u202e`.
 */

const UNSAFE = new RegExp(
  [
    // C0, DEL and C1.
    '[\\u0000-\\u001f\\u007f-\\u009f]',
    // What breaks lines, sets a direction, or has no width.
    '[\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]',
    // Half a character.
    '[\\ud800-\\udbff](?![\\udc00-\\udfff])',
    '(?<![\\ud800-\\udbff])[\\udc00-\\udfff]',
    // Tags, which are invisible.
    '\\udb40[\\udc00-\\udc7f]',
  ].join('|'),
  'g',
)

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

export function escape(text: string): string {
  return text.replace(UNSAFE, (found) => NAMED[found] ?? eachUnit(found, coded))
}

/** JSON on one line. JSON has no `\x1b`, and its own escapes leave out C1, directions and the like. */
export function escapedJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent) ?? 'null'
  // A line break in it is one of ours: those of strings are escaped already.
  return text.replace(UNSAFE, (found) => (found === '\n' ? found : eachUnit(found, unicode)))
}

/** JSON, or a string of it, in which what the expression finds, unit by unit, is written as JSON escapes it: it says the same. */
export function escapeUnits(json: string, units: RegExp): string {
  return json.replace(units, (unit) => unicode(unit.charCodeAt(0)))
}

function eachUnit(text: string, write: (code: number) => string): string {
  return text
    .split('')
    .map((unit) => write(unit.charCodeAt(0)))
    .join('')
}

function coded(code: number): string {
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : unicode(code)
}

function unicode(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`
}

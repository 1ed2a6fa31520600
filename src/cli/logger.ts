/** The logger of a box that a command makes: warnings and errors, a line for each, on stderr. */
import { lineOf } from '../console.js'
import type { Logger } from '../handler.js'
import type { Output } from './output/output.js'
import { paint } from './output/text.js'

export function createLogger(out: Output): Logger {
  const tell =
    (style: 'yellow' | 'red'): Logger['warn'] =>
    (about, text) =>
      out.note(paint(style, 'oncebox:'), ' ', lineOf(about, text))
  return { debug: () => undefined, info: () => undefined, warn: tell('yellow'), error: tell('red') }
}

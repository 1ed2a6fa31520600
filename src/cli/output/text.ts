/**
 * Text for the terminal. A plain string is escaped when it is written, whoever it came from, so that nothing has to be
 * remembered where it is written; colours are objects until then.
 */
import { styleText } from 'node:util'
import { escape } from '../../escape.js'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

export interface Painted {
  readonly style: Style
  readonly text: string
}

export type Text = string | number | Painted | readonly Text[]

export function paint(style: Style, text: string | number): Painted {
  return { style, text: String(text) }
}

export interface Rendering {
  readonly colour: boolean
  /** Untrusted characters as they are, because somebody asked for it. */
  readonly raw?: boolean
}

/** A piece of text in one style, as it will be shown. */
export interface Span {
  readonly style: Style | undefined
  readonly shown: string
}

export function spansOf(text: Text, raw = false): Span[] {
  if (Array.isArray(text)) return (text as readonly Text[]).flatMap((part) => spansOf(part, raw))
  const { style, text: own } = typeof text === 'object' ? (text as Painted) : { style: undefined, text: String(text) }
  return [{ style, shown: raw ? own : escape(own) }]
}

export function renderSpans(spans: readonly Span[], { colour }: Rendering): string {
  return spans
    .map(({ style, shown }) =>
      // The stream was judged already.
      colour && style && shown !== '' ? styleText(style, shown, { validateStream: false }) : shown,
    )
    .join('')
}

export function render(text: Text, rendering: Rendering): string {
  return renderSpans(spansOf(text, rendering.raw), rendering)
}

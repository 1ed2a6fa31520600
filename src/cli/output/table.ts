/** A table that fits the terminal: columns that may shrink give way, the widest first, and then titles. In a pipe nothing is cut. */
import { paint, renderSpans, spansOf, type Rendering, type Span, type Text } from './text.js'
import { cut, widthOf } from './width.js'

export interface Column {
  readonly title: string
  /** Numbers. */
  readonly right?: true
  /** It is cut, down to so many columns, where the table would be wider than the terminal. */
  readonly least?: number
}

const GAP = '  '
const LEAST_TITLE = 4

export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly Text[])[],
  rendering: Rendering & { readonly width: number | undefined },
): string[] {
  const cells = rows.map((row) => row.map((text) => spansOf(text, rendering.raw)))
  const heads = columns.map(({ title }) => spansOf(paint('dim', title)))
  const widest = columns.map((_, at) => cells.reduce((most, row) => Math.max(most, spanWidth(row[at] ?? [])), 0))
  const natural = columns.map((_, at) => Math.max(widest[at]!, spanWidth(heads[at]!)))
  const widths = rendering.width === undefined ? natural : fit(columns, { natural, widest }, rendering.width)
  return [heads, ...cells].map((row) =>
    columns
      .map((column, at) => {
        const spans = cutSpans(row[at] ?? [], widths[at]!)
        const room = ' '.repeat(widths[at]! - spanWidth(spans))
        const text = renderSpans(spans, rendering)
        if (column.right) return room + text
        // No blanks at the end of a line.
        return at === columns.length - 1 ? text : text + room
      })
      .join(GAP),
  )
}

interface Widths {
  readonly natural: readonly number[]
  /** Of the cells, without their title. */
  readonly widest: readonly number[]
}

/** Columns that may not shrink have their titles cut where nothing else is left to cut: never what they say. */
function fit(columns: readonly Column[], { natural, widest }: Widths, width: number): number[] {
  const least = columns.map((column, at) => column.least ?? natural[at]!)
  const shrunk = shrink(natural, least, width)
  const bare = columns.map((column, at) => column.least ?? Math.max(LEAST_TITLE, widest[at]!))
  return shrink(shrunk, bare, width)
}

/** Takes from the widest column that may shrink until the table fits, or none may. */
function shrink(given: readonly number[], least: readonly number[], width: number): number[] {
  const widths = [...given]
  const sum = (): number => widths.reduce((all, one) => all + one, GAP.length * (widths.length - 1))
  while (sum() > width) {
    let widest = -1
    for (const [at, own] of widths.entries()) {
      if (own > least[at]! && (widest < 0 || own > widths[widest]!)) widest = at
    }
    if (widest < 0) break
    widths[widest]!--
  }
  return widths
}

function spanWidth(spans: readonly Span[]): number {
  return spans.reduce((width, { shown }) => width + widthOf(shown), 0)
}

function cutSpans(spans: readonly Span[], width: number): readonly Span[] {
  if (spanWidth(spans) <= width) return spans
  const kept: Span[] = []
  let left = width
  for (const { style, shown } of spans) {
    if (left <= 0) break
    const fits = widthOf(shown) < left || spans.length === 1
    kept.push({ style, shown: fits ? cut(shown, left) : cut(`${shown}…`, left) })
    left -= widthOf(kept.at(-1)!.shown)
  }
  return kept
}

/**
 * The search language, as far as a search bar needs it: the parts of a query for chips, and what may come next. The server's
 * parser is the judge; this one takes what is half typed too.
 */
import { nearest } from '../../../src/nearest.js'

export interface Piece {
  /** Before the colon; undefined for a bare word. */
  readonly qualifier?: string
  /** As written, with quotes. */
  readonly value: string
  readonly from: number
  readonly to: number
}

const QUALIFIED = /^([a-zA-Z][\w-]*(?:\.[^\s:",]+)*):/
/** Values with commas between them, quotes around what has spaces. The last quote may be missing while it is typed. */
const VALUES = /^(?:"(?:[^"\\]|\\.)*"?|[^\s"])*/s

export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = []
  let at = 0
  for (;;) {
    at += /^\s*/.exec(text.slice(at))![0].length
    if (at >= text.length) return pieces
    const rest = text.slice(at)
    const [head = '', qualifier] = QUALIFIED.exec(rest) ?? []
    const [value = ''] = VALUES.exec(rest.slice(head.length)) ?? []
    const to = at + Math.max(1, head.length + value.length)
    pieces.push({ ...(qualifier !== undefined && { qualifier }), value, from: at, to })
    at = to
  }
}

export function textOf({ qualifier, value }: Pick<Piece, 'qualifier' | 'value'>): string {
  return qualifier === undefined ? value : `${qualifier}:${value}`
}

/** Those of which a query has one value. */
const SINGLE = new Set(['after', 'before', 'box', 'blocking'])

/**
 * A query with more parts. A qualifier that is there already gets one more value, any of which will do; of a time, or a box, the
 * new one counts.
 */
export function addTo(query: string, more: string): string {
  const pieces = [...piecesOf(query)]
  for (const piece of piecesOf(more)) {
    const name = piece.qualifier ?? 'id'
    const at = name.startsWith('data.') ? -1 : pieces.findIndex(({ qualifier = 'id' }) => qualifier === name)
    if (at === -1) pieces.push(piece)
    else {
      const { qualifier, value: before } = pieces[at]!
      const value = SINGLE.has(name) ? piece.value : joined(before, piece.value)
      pieces[at] = { ...(qualifier !== undefined && { qualifier }), value, from: 0, to: 0 }
    }
  }
  return pieces.map(textOf).join(' ')
}

function joined(before: string, more: string): string {
  const values = [...valuesOf(before), ...valuesOf(more)]
  return [...new Set(values)].join(',')
}

/** The values of a piece, as they are written. */
export function valuesOf(value: string): readonly string[] {
  return value.match(/"(?:[^"\\]|\\.)*"?|[^",]+/gs) ?? []
}

/** The query without its nth part. */
export function without(query: string, index: number): string {
  return piecesOf(query).filter((_, at) => at !== index).map(textOf).join(' ') // prettier-ignore
}

/** The query with a qualifier set to these values, or without it. */
export function withValues(query: string, qualifier: string, values: readonly string[]): string {
  const rest = piecesOf(query).filter((piece) => (piece.qualifier ?? 'id') !== qualifier)
  const set = values.length === 0 ? [] : [`${qualifier}:${values.map(quote).join(',')}`]
  return [...rest.map(textOf), ...set].join(' ')
}

/** What a qualifier is set to, without quotes; empty if the query does not name it. */
export function readValues(query: string, qualifier: string): readonly string[] {
  const found = piecesOf(query).find((piece) => (piece.qualifier ?? 'id') === qualifier)
  return found ? valuesOf(found.value).map(unquote) : []
}

/** A value as a query has it: in quotes if it would not be one value without, or would be taken for a qualifier. */
export function quote(value: string): string {
  return /^[^\s,":]+$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`
}

export function unquote(value: string): string {
  return /^"/.test(value) ? value.replace(/^"|"$/g, '').replace(/\\(.)/gs, '$1') : value
}

/** The first qualifier that there is not, and what was meant perhaps. */
export function unknownIn(
  text: string,
  known: readonly string[],
): { name: string; near: string | undefined } | undefined {
  for (const { qualifier } of piecesOf(text)) {
    if (qualifier === undefined || known.includes(qualifier)) continue
    if (qualifier.startsWith('data.') && known.includes('data')) continue
    return { name: qualifier, near: nearest(qualifier.split('.')[0]!, known) }
  }
  return undefined
}

/** A query for exactly one message and consumer. */
export function queryFor({ id, source, consumer }: { id: string; source: string; consumer: string }): string {
  return `id:${quote(id)} source:${quote(source)} consumer:${quote(consumer)}`
}

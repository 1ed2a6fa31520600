/** A payload as a tree, printed from its text: numbers as they were written, names as often as they are there. */
import { countInner, innerOf, readString, rootOf, type Inner, type Place } from './json-scan.js'

export interface Branch {
  readonly kind: 'object' | 'array'
  readonly place: Place
  readonly count: number
  /** Such as "7 keys". */
  readonly size: string
}

export interface Leaf {
  readonly kind: 'string' | 'number' | 'word' | 'redacted'
  /** As it is to be shown; of a string without its quotes. */
  readonly text: string
  /** What a reader should know, such as "exact, above 2⁵³". */
  readonly label?: string
}

export interface Member {
  /** Of an array its index. */
  readonly name: string
  readonly isIndex: boolean
  /** The same name comes again below, and that one counts. */
  readonly isOverruled: boolean
  readonly value: Branch | Leaf
}

export interface Level {
  readonly members: readonly Member[]
  readonly total: number
}

export interface Source {
  readonly text: string
  /** Something was taken out of it: what looks like a mask is one. */
  readonly redacted: boolean
}

/** Open so deep at first. */
export const OPEN_DEPTH = 3
/** So many members at a time: more would freeze the page. */
export const PAGE = 200
const MOST_AT_FIRST = 300

export function treeOf(source: Source): Branch | Leaf {
  return valueOf(source, rootOf(source.text))
}

/** The members of an object or array from `skip` on, `most` of them. */
export function levelOf(source: Source, { place }: Branch, { skip = 0, most = PAGE } = {}): Level {
  const taken: (Inner & { readonly at: number })[] = []
  const last = new Map<string, number>()
  let total = 0
  for (const inner of innerOf(source.text, place)) {
    if (inner.name !== undefined) last.set(inner.name, total)
    if (total >= skip && taken.length < most) taken.push({ ...inner, at: total })
    total += 1
  }
  const members = taken.map((inner): Member => ({
    name: inner.name ?? String(inner.at),
    isIndex: inner.name === undefined,
    isOverruled: inner.name !== undefined && last.get(inner.name) !== inner.at,
    value: valueOf(source, inner),
  })) // prettier-ignore
  return { members, total }
}

/** Which are open before the reader opens any, by where they begin: the upper levels, as far as a page can take them. */
export function openAtFirst(source: Source, root: Branch | Leaf, read = levelOf): ReadonlySet<number> {
  const open = new Set<number>()
  let level: readonly Branch[] = 'place' in root ? [root] : []
  let shown = 0
  for (let depth = 0; depth < OPEN_DEPTH; depth += 1) {
    const next: Branch[] = []
    for (const branch of level) {
      const rows = Math.min(PAGE, branch.count)
      if (shown + rows > MOST_AT_FIRST) continue
      shown += rows
      open.add(branch.place.from)
      for (const { value } of read(source, branch).members) if ('place' in value) next.push(value)
    }
    level = next
  }
  return open
}

/** How many values of the payload are masked. */
export function countRedacted({ text, redacted }: Source): number {
  if (!redacted) return 0
  return [...text.matchAll(/"(?:\[redacted\]|[•*█▇]{2}[^"\\]*)"(?!\s*:)/g)].length
}

function valueOf(source: Source, place: Place): Branch | Leaf {
  const { text } = source
  const { kind, from, to } = place
  if (kind === 'object' || kind === 'array') return branchOf(text, { kind, from, to })
  if (kind === 'number') return numberOf(text.slice(from, to))
  if (kind === 'word') return { kind, text: text.slice(from, to) }
  const value = readString(text, place)
  if (source.redacted && isMask(value))
    return { kind: 'redacted', text: value.replace(/^\[redacted\]$|^[•*█▇\s]+/, '') }
  return { kind, text: value }
}

/** As the server masks, and as people write masks. */
function isMask(value: string): boolean {
  return value === '[redacted]' || /^[•*█▇]{2}/.test(value)
}

function branchOf(text: string, place: Place & { readonly kind: Branch['kind'] }): Branch {
  const count = countInner(text, place)
  const noun = place.kind === 'object' ? 'key' : 'item'
  return { kind: place.kind, place, count, size: `${count} ${noun}${count === 1 ? '' : 's'}` }
}

function numberOf(text: string): Leaf {
  const value = Number(text)
  if (!Number.isFinite(value)) return { kind: 'number', text, label: 'exact; JavaScript would read Infinity' }
  if (Object.is(value, -0) && /^-[0.]+(?:e|$)/i.test(text)) return { kind: 'number', text, label: 'minus zero' }
  if (decimal(String(value)) === decimal(text)) return { kind: 'number', text }
  const isLarge = /^-?\d+$/.test(text) && Math.abs(value) >= Number.MAX_SAFE_INTEGER
  return { kind: 'number', text, label: isLarge ? 'exact, above 2⁵³' : `exact; JavaScript would read ${value}` }
}

/** The same for 1, 1.0 and 10e-1, and different for numbers that only look alike once they are rounded. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(power) - fraction.length + digits.length - significant.length}`
}

/** Suggestions for the search bar: qualifiers first, then values with their counts. */
import type { Vocabulary } from '../../../src/dashboard/answers/index.js'
import { piecesOf, quote, textOf, unknownIn, unquote, valuesOf } from './query.js'

export interface Option {
  /** What the draft becomes. */
  readonly draft: string
  /** Shown: a qualifier or a value. */
  readonly code: string
  readonly words: string
  readonly count?: string
  /** Choosing it ends the term, and the search runs. */
  readonly isWhole: boolean
}

export interface Suggestions {
  readonly head: string
  readonly options: readonly Option[]
  /** Such as "There is no ‘stat:’." */
  readonly problem?: string
}

/** How many there are of a value, as text; undefined if nobody knows. */
export type CountOf = (qualifier: string, value: string) => string | undefined

const MOST = 8
const SAMPLE = 3
const TIMES = ['15m', '1h', '24h', '7d']
const TIME_WORDS: Readonly<Record<string, string>> = {
  '15m': 'a quarter of an hour ago', '1h': 'an hour ago', '24h': 'a day ago', '7d': 'a week ago',
} // prettier-ignore

export function suggest(draft: string, known: Vocabulary, countOf: CountOf = () => undefined): Suggestions {
  const names = known.qualifiers.map(({ name }) => name)
  const unknown = unknownIn(draft, names)
  if (unknown) return mended(draft, unknown)
  const isNew = draft === '' || /\s$/.test(draft)
  const pieces = piecesOf(draft)
  const last = isNew ? undefined : pieces.at(-1)
  const before = pieces.slice(0, last ? -1 : undefined).map(textOf)
  const become = (text: string): string => [...before, text].join(' ')
  if (last?.qualifier === undefined) return byName(last?.value ?? '', known, { become, countOf })
  if (last.qualifier.startsWith('data.')) return { head: 'A value, as in the payload', options: [] }
  return byValue(last.qualifier, last.value, known, { become, countOf })
}

interface Tools {
  become(text: string): string
  readonly countOf: CountOf
}

function byName(typed: string, known: Vocabulary, { become, countOf }: Tools): Suggestions {
  const wanted = typed.toLowerCase()
  const names = known.qualifiers
    .filter(({ name }) => name.startsWith(wanted) || (wanted !== '' && `${name}:`.includes(wanted)))
    .map(({ name, words }): Option => {
      const code = name === 'data' ? 'data.' : `${name}:`
      return { draft: become(code), code, words: sampleOf(name, known) ?? words, isWhole: false }
    })
  const values = wanted.length < 2 ? [] : ['state', 'type', 'consumer'].flatMap((name) =>
    valuesFor(name, known)
      .filter((value) => value.toLowerCase().includes(wanted))
      .map((value): Option => {
        const count = countOf(name, value)
        const code = `${name}:${quote(value)}`
        return { draft: become(code), code, words: '', ...(count !== undefined && { count }), isWhole: true }
      }),
  ) // prettier-ignore
  return { head: 'Narrow down by', options: [...names, ...values].slice(0, wanted === '' ? 20 : MOST * 2) }
}

function byValue(name: string, typed: string, known: Vocabulary, { become, countOf }: Tools): Suggestions {
  const all = valuesOf(typed)
  const goesOn = typed === '' || typed.endsWith(',')
  const said = goesOn ? all : all.slice(0, -1)
  const wanted = unquote(goesOn ? '' : (all.at(-1) ?? '')).toLowerCase()
  const options = valuesFor(name, known)
    .filter((value) => value.toLowerCase().includes(wanted) && !said.includes(quote(value)))
    .sort((a, b) => Number(b.toLowerCase().startsWith(wanted)) - Number(a.toLowerCase().startsWith(wanted)))
    .slice(0, MOST)
    .map((value): Option => {
      const count = countOf(name, value)
      return {
        draft: become(`${name}:${[...said, quote(value)].join(',')}`),
        code: value,
        words: name === 'after' || name === 'before' ? (TIME_WORDS[value] ?? '') : '',
        ...(count !== undefined && { count }),
        isWhole: true,
      }
    })
  const words = known.qualifiers.find((one) => one.name === name)?.words
  return { head: words === undefined ? `${name}:` : `${name}: ${words}`, options }
}

function valuesFor(name: string, known: Vocabulary): readonly string[] {
  switch (name) {
    case 'state':
      return known.states
    case 'type':
      return known.types
    case 'consumer':
      return [...known.consumers.map((one) => one.name), ...known.sinks]
    case 'reason':
      return known.reasons
    case 'box':
      return ['inbox', 'outbox']
    case 'blocking':
      return ['true']
    case 'after':
    case 'before':
      return TIMES
    default:
      return []
  }
}

/** Such as "charge-card, ship-order and 6 more". */
function sampleOf(name: string, known: Vocabulary): string | undefined {
  if (name !== 'type' && name !== 'consumer') return undefined
  const values = valuesFor(name, known)
  if (values.length === 0) return undefined
  const more = values.length - SAMPLE
  return values.slice(0, SAMPLE).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function mended(draft: string, { name, near }: { name: string; near: string | undefined }): Suggestions {
  const problem = `There is no ‘${name}:’.`
  if (near === undefined) return { head: 'An id with a colon goes in quotes', options: [], problem }
  const code = near === 'data' ? 'data.' : `${near}:`
  const fixed = draft.replace(`${name}:`, code)
  return {
    head: 'Did you mean',
    problem,
    options: [{ draft: fixed, code, words: `instead of ${name}:`, isWhole: false }],
  }
}

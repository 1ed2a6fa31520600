/**
 * Fields: what a route takes, each said once: its check, and its words for the page. Nothing here knows of a server, so that the
 * client in a browser has the same declarations.
 */

export interface Field<T> {
  readonly kind: 'text' | 'integer' | 'number' | 'flag' | 'choice'
  readonly required: boolean
  /** What it takes, for people. */
  readonly words: string
  /** What was given, checked. Throws FieldProblem. A query has texts only. */
  read(name: string, given: unknown, from: 'query' | 'body'): T | undefined
  /** Never there: by this the compiler knows the type. */
  readonly type?: T
}

export type Fields = Readonly<Record<string, Field<unknown>>>

/** What goes into a route. */
export type InputOf<F extends Fields> = {
  readonly [K in keyof F as F[K] extends Required<unknown> ? K : never]: TypeOf<F[K]>
} & {
  readonly [K in keyof F as F[K] extends Required<unknown> ? never : K]?: TypeOf<F[K]> | undefined
}
type TypeOf<F> = F extends Field<infer T> ? T : never

/** A field that has to be there. */
export interface Required<T> extends Field<T> {
  readonly required: true
}

/** What was given does not fit. `field` is its name. */
export class FieldProblem extends Error {
  constructor(
    readonly field: string,
    problem: string,
  ) {
    super(`${field} ${problem}`)
  }
}

interface TextRange {
  /** In characters. */
  readonly most: number
  /** May be empty: '' stands for something. */
  readonly empty?: boolean
}

export function text(words: string, { most, empty = false }: TextRange): Field<string> {
  return field('text', `${words}; at most ${most} characters`, (name, given) => {
    if (typeof given !== 'string') throw new FieldProblem(name, 'must be a text')
    if (given.length > most)
      throw new FieldProblem(name, `must have at most ${most} characters; it has ${given.length}`)
    if (given === '' && !empty) throw new FieldProblem(name, 'must not be empty')
    if (given.includes('\0') || !isWellFormed(given)) {
      throw new FieldProblem(name, 'has NUL or a lone surrogate, which nothing stored has')
    }
    return given
  })
}

interface Range {
  readonly least: number
  readonly most: number
}

export function integer(words: string, { least, most }: Range): Field<number> {
  return field('integer', `${words}; from ${least} to ${most}`, (name, given, from) => {
    const value = from === 'query' && typeof given === 'string' && /^-?\d{1,15}$/.test(given) ? Number(given) : given
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
    throw new FieldProblem(name, `must be a whole number from ${least} to ${most}`)
  })
}

/** More than nothing. */
export function rate(words: string, most: number): Field<number> {
  return field('number', `${words}; more than 0, at most ${most}`, (name, given) => {
    if (typeof given === 'number' && given > 0 && given <= most) return given
    throw new FieldProblem(name, `must be a number of more than 0 and at most ${most}`)
  })
}

export function flag(words: string): Field<boolean> {
  return field('flag', words, (name, given, from) => {
    const value = from === 'query' ? (given === 'true' ? true : given === 'false' ? false : given) : given
    if (typeof value === 'boolean') return value
    throw new FieldProblem(name, 'must be true or false')
  })
}

/** It has to be there. */
export function required<T>(of: Field<T>): Required<T> {
  return {
    ...of,
    required: true,
    read(name, given, from) {
      if (given === undefined) throw new FieldProblem(name, 'is missing')
      return of.read(name, given, from)
    },
  }
}

function field<T>(
  kind: Field<T>['kind'],
  words: string,
  check: (name: string, given: unknown, from: 'query' | 'body') => T,
): Field<T> {
  return {
    kind,
    words,
    required: false,
    read: (name, given, from) => (given === undefined ? undefined : check(name, given, from)),
  }
}

/** As String.prototype.isWellFormed, which not every browser has. */
function isWellFormed(value: string): boolean {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value)
}

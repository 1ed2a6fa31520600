/**
 * Options, each said once. An interface has the types and the doc comments, for readers and editors. The declaration beside it
 * has, for each option, the check, the default and the words for a default that is no value:
 *
 *     const OPTIONS = { batch: integer({ least: 1, most: 10_000, fallback: 100 }), remove: boolean(false) }
 *     const { batch, remove } = resolve('redis', given, OPTIONS)
 *
 * `resolve` compiles only if the two agree: each has the options of the other, and an option takes what its interface says.
 * The tables of the pages are tested against the declarations.
 */
import {
  checkInteger,
  checkKnown,
  checkNumber,
  checkOneOf,
  nameProblem,
  requireFunction,
  show,
} from './check-options.js'
import { OnceboxError } from './errors.js'

export interface Option<Given, Resolved = Given> {
  /** What the option is, given or not. Throws OPTION_INVALID, with its name, what it takes and what it got. */
  readonly read: (where: string, given: unknown) => Resolved
  /** What it is if it is not given. Undefined: it has to be. */
  readonly byDefault: Default | undefined
  /** Never there: by this the compiler compares what can be given. */
  readonly given?: (given: Given) => Given
}

type Default = { readonly value: unknown } | { readonly words: string }

/** A declaration of the options of an interface. */
export type Options<Given> = { readonly [K in keyof Given]-?: Option<Given[K], unknown> }

type Declared = Readonly<Record<string, Option<never, unknown>>>
type GivenOf<D> = { [K in keyof D as undefined extends GivenBy<D[K]> ? K : never]?: GivenBy<D[K]> } & {
  [K in keyof D as undefined extends GivenBy<D[K]> ? never : K]: GivenBy<D[K]>
}
type GivenBy<O> = O extends { readonly given?: (given: infer G) => unknown } ? G : never
export type Resolved<D> = { readonly [K in keyof D]: D[K] extends { read: (...given: never) => infer R } ? R : never }

/** Every option of the declaration, checked and with its default in place. An unknown one is refused. */
export function resolve<Given extends object, D extends Options<Given>>(
  where: string,
  given: Given,
  declared: D & Record<Exclude<keyof D, keyof Given>, never>,
): Resolved<D> {
  checkNames(where, given, declared)
  return readAll(where, given, declared)
}

/** The same where the names are checked already, because there are options of another declaration among them. */
export function readAll<Given extends object, D extends Options<Given>>(
  where: string,
  given: Given,
  declared: D & Record<Exclude<keyof D, keyof Given>, never>,
): Resolved<D> {
  return readEach((name) => `${where}: ${name}`, given, declared) as Resolved<D>
}

/** Options of `absent` may be there if they are undefined. */
export function checkNames(where: string, given: object, declared: object, absent: object = {}): void {
  const isAbsent = (name: string): boolean => name in absent && given[name as never] === undefined
  checkKnown(where, given, [...new Set([...Object.keys(declared), ...Object.keys(absent).filter(isAbsent)])])
}

function readEach(where: (name: string) => string, given: object, declared: object): object {
  const entries = Object.entries(declared as Declared)
  return Object.fromEntries(entries.map(([name, { read }]) => [name, read(where(name), given[name as never])]))
}

function required<Given, Read = Given>(read: (where: string, given: unknown) => Read): Option<Given, Read> {
  return { read, byDefault: undefined }
}

/** With a value in its place if it is left out. */
export function orElse<Given, Read>({ read }: Option<Given, Read>, value: unknown): Option<Given | undefined, Read> {
  return { read: (where, given) => read(where, given === undefined ? value : given), byDefault: { value } }
}

/** May be left out. `words` are for the pages: what happens then. */
export function optional<Given, Read>(
  { read }: Option<Given, Read>,
  words = '',
): Option<Given | undefined, Read | undefined> {
  return { read: (where, given) => (given === undefined ? undefined : read(where, given)), byDefault: { words } }
}

interface Range {
  readonly least: number
  readonly most?: number
}

export function integer(range: Range & { readonly fallback: number }): Option<number | undefined, number>
export function integer(range: Range): Option<number>
export function integer({
  least,
  most,
  fallback,
}: Range & { readonly fallback?: number }): Option<number> | Option<number | undefined, number> {
  const own = required<number>((where, given) => checkInteger(where, given as number, least, most))
  return fallback === undefined ? own : orElse(own, fallback)
}

export function number(range: { readonly least: number; readonly fallback: number }): Option<number | undefined, number>
export function number(range: { readonly least: number }): Option<number>
export function number({
  least,
  fallback,
}: Range & { readonly fallback?: number }): Option<number> | Option<number | undefined, number> {
  const own = required<number>((where, given) => checkNumber(where, given as number, least))
  return fallback === undefined ? own : orElse(own, fallback)
}

export function boolean(fallback: boolean): Option<boolean | undefined, boolean> {
  const own = required<boolean>((where, given) => {
    if (typeof given !== 'boolean') throw invalid(`${where} must be true or false; got ${show(given)}`)
    return given
  })
  return orElse(own, fallback)
}

export function oneOf<const T extends string>(allowed: readonly T[], fallback: NoInfer<T>): Option<T | undefined, T>
export function oneOf<const T extends string>(allowed: readonly T[]): Option<T>
export function oneOf<const T extends string>(
  allowed: readonly T[],
  fallback?: T,
): Option<T> | Option<T | undefined, T> {
  const own = required<T>((where, given) => checkOneOf(where, given as T, allowed))
  return fallback === undefined ? own : orElse(own, fallback)
}

/** A limit that may be one that is never reached. */
export function orInfinity<Given>({ read, ...rest }: Option<Given, number>): Option<Given, number> {
  return { ...rest, read: (where, given) => (given === Infinity ? Infinity : read(where, given)) }
}

/** Text that ends up in keys, names and addresses. */
export function name(maxBytes?: number): Option<string> {
  return required((where, given) => {
    const problem = nameProblem(given, maxBytes)
    if (problem) throw invalid(`${where} ${problem}`)
    return given as string
  })
}

export function names(): Option<readonly string[]> {
  return required((where, given) => {
    if (Array.isArray(given) && given.every((one) => typeof one === 'string')) return given
    throw invalid(`${where} must be a list of names; got ${show(given)}`)
  })
}

export function callback<F>(): Option<F> {
  return required((where, given) => {
    requireFunction(where, given)
    return given as F
  })
}

/** A name, or how to find it. */
export function nameOr<F>(): Option<string | F> {
  const own = name()
  return required((where, given) => (typeof given === 'function' ? (given as F) : own.read(where, given)))
}

/** Anything else. */
export function checked<Given, Read = Given>(read: (where: string, given: Given) => Read): Option<Given, Read> {
  return required((where, given) => read(where, given as Given))
}

/** Options among options: `group: { messages, ms }`. */
export function nested<const D extends object>(declared: D): Option<GivenOf<D> | undefined, Resolved<D>> {
  const own = required<GivenOf<D>, Resolved<D>>((where, given) => {
    checkNames(where, given as object, declared)
    return readEach((name) => `${where}.${name}`, given as object, declared) as Resolved<D>
  })
  return { ...orElse(own, {}), byDefault: { value: readEach(String, {}, declared) } }
}

/** Settings that are handed to a client. */
export function settings(
  ours: readonly string[] = [],
): Option<Readonly<Record<string, unknown>> | undefined, Readonly<Record<string, unknown>>> {
  const own = required<Readonly<Record<string, unknown>>>((where, given) => {
    if (typeof given !== 'object' || given === null)
      throw invalid(`${where} must be an object of settings; got ${show(given)}`)
    const taken = ours.find((name) => name in given)
    if (taken) throw invalid(`${where}: ${taken} is set by oncebox; see the options beside it`)
    return given as Readonly<Record<string, unknown>>
  })
  return { ...orElse(own, {}), byDefault: { words: '' } }
}

export function invalid(problem: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', problem)
}

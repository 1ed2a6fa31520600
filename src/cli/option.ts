/**
 * Options and arguments of commands, each said once: what it is for, what it takes, and what becomes of it. Names are in
 * camel case here, and `--with-dashes` where people write them.
 */
import { nearest } from '../nearest.js'
import { misused } from './exit.js'

export interface Option<T> {
  /** What it does, for `--help`. */
  readonly summary: string
  /** What stands for its value there: `<name>`. Undefined: it is a flag, and takes none. */
  readonly value: string | undefined
  readonly multiple: boolean
  /** The words for what it is if it is not given. */
  readonly byDefault: string | undefined
  /** For completion. */
  readonly choices: readonly string[] | undefined
  /** What it is, from the texts that were given, possibly none. Throws what `misused` makes. */
  readonly read: (name: string, given: readonly string[]) => T
}

/** A positional argument. */
export interface Argument<T> {
  readonly summary: string
  readonly required: boolean
  readonly multiple: boolean
  readonly choices: readonly string[] | undefined
  readonly read: (name: string, given: readonly string[]) => T
}

export type OptionsOf<D> = { readonly [K in keyof D]: D[K] extends { read: (...given: never) => infer T } ? T : never }

const PLAIN = { multiple: false, byDefault: undefined, choices: undefined } as const

export function flag(summary: string): Option<boolean> {
  return { ...PLAIN, summary, value: undefined, read: (_, given) => given.length > 0 }
}

export function text(summary: string, value = 'text'): Option<string | undefined> {
  return { ...PLAIN, summary, value, read: (name, given) => filled(name, given)[0] }
}

/** Given any number of times: all of them. */
export function texts(summary: string, value = 'text'): Option<readonly string[] | undefined> {
  const read = (name: string, given: readonly string[]): readonly string[] | undefined =>
    given.length > 0 ? filled(name, given) : undefined
  return { ...PLAIN, summary, value, multiple: true, read }
}

export interface Range {
  readonly least: number
  readonly most?: number
}

export function integer(summary: string, range: Range): Option<number | undefined>
export function integer(summary: string, range: Range & { readonly fallback: number }): Option<number>
export function integer(
  summary: string,
  { least, most = Number.MAX_SAFE_INTEGER, fallback }: Range & { readonly fallback?: number },
): Option<number | undefined> {
  return {
    ...PLAIN,
    ...{ summary, value: 'number', byDefault: fallback === undefined ? undefined : String(fallback) },
    read(name, [given]) {
      if (given === undefined) return fallback
      const number = /^\d{1,15}$/.test(given) ? Number(given) : NaN
      if (number >= least && number <= most) return number
      const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
      throw misused(`${name} takes a whole number ${range}; got "${given}"`)
    },
  }
}

export function choice<const T extends string>(summary: string, choices: readonly T[]): Option<T | undefined> {
  const words = choices.join('|')
  const long = words.length > 40
  return {
    ...PLAIN,
    ...{ summary: long ? `${summary} One of ${choices.join(', ')}.` : summary, value: long ? 'word' : words, choices },
    read: (name, [given]) => (given === undefined ? undefined : oneOf(name, given, choices)),
  }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** In ms: `500ms`, `30s`, `5m`, `2h`, `1d`. A number alone is seconds. */
export function duration(summary: string): Option<number | undefined>
export function duration(summary: string, fallbackMs: number, byDefault: string): Option<number>
export function duration(summary: string, fallbackMs?: number, byDefault?: string): Option<number | undefined> {
  return {
    ...PLAIN,
    ...{ summary, value: 'time', byDefault },
    read: (name, [given]) => (given === undefined ? fallbackMs : durationMs(name, given)),
  }
}

/** A time of day in ISO 8601, or how long ago: `2026-03-01T12:00:00Z`, `2h`. */
export function moment(summary: string): Option<Date | undefined> {
  return {
    ...PLAIN,
    ...{ summary, value: 'time' },
    read(name, [given]) {
      if (given === undefined) return undefined
      if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(given)) return new Date(Date.now() - durationMs(name, given))
      const at = /^\d{4}-\d\d-\d\d/.test(given) ? new Date(given) : new Date(NaN)
      if (!Number.isNaN(at.getTime())) return at
      throw misused(`${name} takes a time such as 2026-03-01T12:00:00Z, or how long ago, such as 2h; got "${given}"`)
    },
  }
}

/** Any JSON. */
export function json(summary: string): Option<unknown> {
  return {
    ...PLAIN,
    ...{ summary, value: 'json' },
    read(name, [given]) {
      if (given === undefined) return undefined
      try {
        return JSON.parse(given) as unknown
      } catch {
        throw misused(`${name} takes JSON, such as '{"orderId":"A-1"}'; what it got is not JSON`)
      }
    },
  }
}

/** The same option, of which `read` makes something else. */
export function mapped<T, R>(option: Option<T>, map: (name: string, value: T) => R): Option<R> {
  return { ...option, read: (name, given) => map(name, option.read(name, given)) }
}

export function argument(summary: string): Argument<string> {
  return {
    summary,
    required: true,
    multiple: false,
    choices: undefined,
    read: (name, given) => filled(name, given)[0]!,
  }
}

/** What is left: any number of them, possibly none. */
export function restArguments(summary: string): Argument<readonly string[]> {
  return { summary, required: false, multiple: true, choices: undefined, read: filled }
}

/** The words of another program, which may be empty. */
export function foreignArguments(summary: string): Argument<readonly string[]> {
  return { ...restArguments(summary), read: (_, given) => given }
}

export function choiceArgument<const T extends string>(summary: string, choices: readonly T[]): Argument<T> {
  return {
    ...{ summary, required: true, multiple: false, choices },
    read: (name, given) => oneOf(name, given[0]!, choices),
  }
}

/** `--error "$MSG"` with MSG unset names nothing, and would find everything. */
function filled(name: string, given: readonly string[]): readonly string[] {
  if (!given.includes('')) return given
  throw misused(`${name} is empty`, 'is a variable not set? Leave it out, or give it a text')
}

function oneOf<const T extends string>(name: string, given: string, choices: readonly T[]): T {
  if ((choices as readonly string[]).includes(given)) return given as T
  const near = nearest(given, choices)
  throw misused(
    `${name} takes one of ${choices.join(', ')}; got "${given}"${near === undefined ? '' : `; did you mean ${near}?`}`,
  )
}

function durationMs(name: string, given: string): number {
  const [, number, unit] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)?$/.exec(given) ?? []
  if (number === undefined) throw misused(`${name} takes a time such as 500ms, 30s, 5m, 2h or 1d; got "${given}"`)
  return Number(number) * UNITS[unit ?? 's']!
}

/** `maxLag` → `max-lag` */
export function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

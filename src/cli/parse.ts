/** What was typed, held against the declaration of a command. */
import { parseArgs } from 'node:util'
import { nearest } from '../nearest.js'
import { allOptions, dashed, type Command, type Options } from './command.js'
import { misused } from './exit.js'

export interface Parsed {
  /** By the names of the declarations, all of them. */
  readonly options: Readonly<Record<string, unknown>>
  readonly args: Readonly<Record<string, unknown>>
}

/** `--help` anywhere: somebody who is lost is not told what else is wrong. */
export function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end < 0 ? undefined : end).some((word) => word === '--help' || word === '-h')
}

export function parse(of: Command, argv: readonly string[]): Parsed {
  const { own, output, connection } = allOptions(of)
  const options: Options = { ...own, ...output, ...connection }
  const given = new Map<string, string[]>()
  const rest: string[] = []
  for (const token of tokensOf(argv, options)) {
    if (token.kind === 'positional') rest.push(token.value)
    if (token.kind !== 'option') continue
    const name = checkToken(of, options, token)
    given.set(name, [...(given.get(name) ?? []), token.value ?? ''])
  }
  return { options: readOptions(options, given), args: readArguments(of, rest) }
}

type Token = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number]
type OptionToken = Extract<Token, { kind: 'option' }>

function tokensOf(argv: readonly string[], options: Options): Token[] {
  const types = Object.entries(options).map(([name, { value }]) => [
    dashed(name),
    { type: value === undefined ? ('boolean' as const) : ('string' as const), multiple: true },
  ])
  const config = { args: [...argv], options: Object.fromEntries(types) as never, strict: false, tokens: true } as const
  return (parseArgs(config) as { tokens: Token[] }).tokens
}

/** The option's name in the declaration. */
function checkToken(of: Command, options: Options, token: OptionToken): string {
  const name = Object.keys(options).find((known) => dashed(known) === token.name)
  if (name === undefined) {
    const near = nearest(token.name, Object.keys(options).map(dashed))
    const hint = near === undefined ? `oncebox ${of.name} --help lists those there are` : `did you mean --${near}?`
    throw misused(`oncebox ${of.name} has no option ${nameIn(token.rawName)}`, hint)
  }
  const { value } = options[name]!
  if (value === undefined && token.value !== undefined) throw misused(`${token.rawName} takes no value`)
  if (value !== undefined && (token.value === undefined || (!token.inlineValue && isOption(token.value, options)))) {
    throw misused(`${token.rawName} needs a value: ${token.rawName} <${value}>`)
  }
  return name
}

/** Of `"--url postgres://…"` in one word, which ends at the first `=`, the option alone: the rest may have a password. */
function nameIn(raw: string): string {
  const [name = ''] = /^[\w-]*/.exec(raw) ?? []
  return name === raw ? raw : `${name}…`
}

/** `--consumer --json` is no consumer of that name; one that is so called is given as `--consumer=--json`. */
function isOption(value: string, options: Options): boolean {
  return value.startsWith('--') && Object.keys(options).some((name) => `--${dashed(name)}` === value.replace(/=.*/, ''))
}

function readOptions(options: Options, given: ReadonlyMap<string, string[]>): Record<string, unknown> {
  const read = Object.entries(options).map(([name, option]) => {
    const texts = given.get(name) ?? []
    if (texts.length > 1 && !option.multiple && option.value !== undefined) {
      throw misused(`--${dashed(name)} is given twice`)
    }
    return [name, option.read(`--${dashed(name)}`, texts)] as const
  })
  return Object.fromEntries(read)
}

function readArguments(of: Command, given: readonly string[]): Record<string, unknown> {
  let left = given
  const read = Object.entries(of.arguments).map(([name, { required, multiple, read: readOne }]) => {
    const own = multiple ? left : left.slice(0, 1)
    left = left.slice(own.length)
    if (required && own.length === 0) {
      throw misused(`oncebox ${of.name} needs <${dashed(name)}>`, `for example: ${of.example}`)
    }
    return [name, readOne(`<${dashed(name)}>`, own)] as const
  })
  if (left.length > 0) {
    throw misused(`oncebox ${of.name} takes no "${left[0]}"`, `oncebox ${of.name} --help says what it takes`)
  }
  return Object.fromEntries(read)
}

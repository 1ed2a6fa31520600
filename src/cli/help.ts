/** `--help`, from the declarations. */
import { allOptions, dashed, type Command, type Options } from './command.js'
import { EXIT_MEANINGS, type ExitCode } from './exit.js'
import { paint, type Text } from './output/text.js'
import { wrap } from './output/width.js'

const LEFT = 28

/** `oncebox dead retry [<ids>...] [options]` */
export function usageOf({ name, arguments: args }: Command): string {
  const words = Object.entries(args).map(([argument, { required, multiple }]) => {
    const word = `<${dashed(argument)}>${multiple ? '...' : ''}`
    return required ? word : `[${word}]`
  })
  return ['oncebox', name, ...words, '[options]'].join(' ')
}

export function commandHelp(of: Command, width: number): Text[] {
  const { own, output, connection } = allOptions(of)
  return [
    ...wrap(of.summary, width),
    ...of.details.flatMap((paragraph) => ['', ...wrap(paragraph, width)]),
    ...section('Usage', [`  ${usageOf(of)}`]),
    ...section('Example', [['  ', paint('cyan', of.example)]]),
    ...section(
      'Arguments',
      Object.entries(of.arguments).flatMap(([name, { summary }]) => entry(`<${dashed(name)}>`, summary, width)),
    ),
    ...section('Options', optionLines({ ...own, ...output }, width)),
    ...section('Connection', optionLines(connection, width)),
    ...section(
      'Exit codes',
      exitsOf(of).map((code) => `  ${String(code).padEnd(3)}  ${EXIT_MEANINGS[code]}`),
    ),
  ]
}

export function exitsOf({ connects, exits }: Command): ExitCode[] {
  const all: ExitCode[] = [0, 1, 2, ...exits, ...(connects ? [4 as const] : []), 130]
  return [...new Set(all)].sort((a, b) => a - b)
}

/** Everything there is, by noun. */
export function overview(commands: readonly Command[], width: number): Text[] {
  return [
    ...wrap('oncebox: a transactional inbox and outbox on PostgreSQL.', width),
    ...section('Usage', ['  oncebox <command> [options]']),
    ...section(
      'Commands',
      commands.flatMap(({ name, summary }) => entry(name, summary, width)),
    ),
    '',
    ...wrap(
      'oncebox <command> --help says more of a command, with an example. oncebox --version prints the version.',
      width,
    ),
    ...wrap(
      'The database is the one of --url, else of DATABASE_URL or PGHOST and the like, else of oncebox.config.*.',
      width,
    ),
  ]
}

function section(title: string, lines: readonly Text[]): Text[] {
  return lines.length === 0 ? [] : ['', paint('bold', `${title}:`), ...lines]
}

function optionLines(options: Options, width: number): Text[] {
  return Object.entries(options).flatMap(([name, { summary, value, byDefault, multiple }]) => {
    const left = value === undefined ? `--${dashed(name)}` : `--${dashed(name)} <${value}>`
    const repeated = multiple ? ' May be given several times.' : ''
    return entry(left, `${summary}${repeated}${byDefault === undefined ? '' : ` Default: ${byDefault}.`}`, width)
  })
}

function entry(left: string, right: string, width: number): Text[] {
  const [first = '', ...rest] = wrap(right, Math.max(20, width - LEFT))
  const head = `  ${left}`
  const indent = ' '.repeat(LEFT)
  const lines = rest.map((line) => indent + line)
  if (head.length + 2 > LEFT) return [head, indent + first, ...lines]
  return [head.padEnd(LEFT) + first, ...lines]
}

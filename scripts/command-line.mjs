/**
 * docs/command-line.md: what is below its marker is written from the declarations of the commands, as `--help` is. It reads
 * them from dist, so it runs at the end of a build.
 *
 *   node scripts/command-line.mjs            writes it
 *   node scripts/command-line.mjs --check    exits with 1 if there is something to write
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as prettier from 'prettier'
import { allOptions, dashed } from '../dist/cli/command.js'
import { EXIT_MEANINGS } from '../dist/cli/exit.js'
import { exitsOf, usageOf } from '../dist/cli/help.js'
import { allCommands } from '../dist/cli/registry.js'

const PAGE = fileURLToPath(new URL('../docs/command-line.md', import.meta.url))
const MARKER = '<!-- From here on the page is written by scripts/command-line.mjs. -->'

const before = readFileSync(PAGE, 'utf8')
const [head] = before.split(MARKER)
const text = `${head}${MARKER}\n\n${reference(await allCommands())}`
const after = await prettier.format(text, { ...(await prettier.resolveConfig(PAGE)), parser: 'markdown' })
if (after !== before) {
  if (process.argv.includes('--check')) {
    console.error('docs/command-line.md is not what the commands say: run `npm run build`')
    process.exit(1)
  }
  writeFileSync(PAGE, after)
}

function reference(commands) {
  const nouns = [...new Set(commands.map(({ noun }) => noun))]
  return [
    '## Commands\n',
    table(
      ['command', 'does'],
      commands.map(({ name, summary }) => [`[\`${name}\`](#oncebox-${name.replaceAll(' ', '-')})`, summary]),
    ),
    ...nouns.flatMap((noun) => commands.filter((command) => command.noun === noun).map(section)),
  ].join('\n')
}

function section(command) {
  const { name, summary, details, example, output } = command
  const { own, output: printing, connection } = allOptions(command)
  const options = Object.entries({ ...own, ...printing }).filter(([option]) => option !== 'help')
  const parts = [
    `### oncebox ${name}\n`,
    [summary, ...details].map(escaped).join('\n\n'),
    `\n\`\`\`sh\n${example}\n\`\`\`\n`,
    `Usage: \`${usageOf(command)}\`${Object.keys(connection).length > 0 ? ', and the [options of a connection](#connection)' : ''}\n`,
  ]
  const args = Object.entries(command.arguments).map(([argument, { summary: words }]) => [
    `\`<${dashed(argument)}>\``,
    words,
  ])
  if (args.length + options.length > 0)
    parts.push(table(['argument or option', 'meaning'], [...args, ...options.map(row)]))
  const special = exitsOf(command).filter((code) => code === 3)
  if (special.length > 0) parts.push(`Exit code 3: ${EXIT_MEANINGS[3]}.\n`)
  if (output) parts.push(`A line of \`--json\`: \`${shown(output)}\`\n`)
  return parts.join('\n')
}

function row([name, { summary, value, byDefault, multiple }]) {
  const written =
    value === undefined ? `\`--${dashed(name)}\`` : `\`--${dashed(name)} <${value.replaceAll('|', '\\|')}>\``
  const repeated = multiple ? ' May be given several times.' : ''
  return [written, `${summary}${repeated}${byDefault === undefined ? '' : ` Default: ${byDefault}.`}`]
}

/** A shape in a line, as one writes a type: `{ id: string, key?: string }` */
function shown({ type, format, enum: values, properties, required = [], additionalProperties, items }) {
  if (values) return values.join(' | ')
  if (format === 'date-time') return 'time'
  if (items) return `${shown(items)}[]`
  if (properties) {
    const fields = Object.entries(properties).map(
      ([name, inner]) => `${name}${required.includes(name) ? '' : '?'}: ${shown(inner)}`,
    )
    return `{ ${fields.join(', ')} }`
  }
  if (type === 'object') return `{ [name]: ${shown(additionalProperties)} }`
  return type ?? 'any'
}

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return (
    [line(heads), line(heads.map(() => '---')), ...rows.map((cells) => line(cells.map((cell) => escaped(cell))))].join(
      '\n',
    ) + '\n'
  )
}

/** `<name>` in words would be taken for a tag. */
function escaped(words) {
  return words.replace(/(`[^`]*`)|[<*_]/g, (found, code) => code ?? `\\${found}`)
}

/**
 * The tables of docs/dashboard-api.md follow from the table of routes.
 *
 *   node scripts/dashboard-api.mjs            writes them; after `npm run build`
 *   node scripts/dashboard-api.mjs --check    exits with 1 if there is something to write
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'

const PAGE = fileURLToPath(new URL('../docs/dashboard-api.md', import.meta.url))
const KINDS = { events: 'a stream of events', text: 'the body itself' }
const { ROUTES } = await import('../dist/dashboard/routes.js')

const before = readFileSync(PAGE, 'utf8')
const after = await format(
  before.replace(/(<!-- routes -->)[^]*(<!-- end of routes -->)/, (_, begin, end) => `${begin}\n\n${render()}\n${end}`),
  { ...(await resolveConfig(PAGE)), parser: 'markdown' },
)
if (process.argv.includes('--check')) {
  if (before !== after) {
    console.error('docs/dashboard-api.md does not say what the routes do: run `node scripts/dashboard-api.mjs`')
    process.exitCode = 1
  }
} else writeFileSync(PAGE, after)

function render() {
  const data = Object.entries(ROUTES).filter(([, { kind }]) => !['page', 'asset'].includes(kind))
  return data.map(([name, route]) => describe(name, route)).join('\n')
}

function describe(name, { method, path, needs, does, input, kind, search }) {
  const right = needs === 'session' ? 'Anybody whom `authorize` knows.' : `Needs \`${needs}\`.`
  const notes = [
    right,
    ...(search ? ['Counts as a search.'] : []),
    ...(kind === 'json' ? [] : [`Answers ${KINDS[kind]}.`]),
  ]
  const fields = Object.entries(input).filter(([field]) => !path.includes(`:${field}`))
  const rows = fields.map(([field, { required, words }]) => `| \`${field}\` | ${required ? 'yes' : ''} | ${words} |`)
  const table = rows.length === 0 ? '' : `\n| field | required | what |\n| --- | --- | --- |\n${rows.join('\n')}\n`
  return `### ${name}\n\n\`${method} ${path}\`\n\n${does} ${notes.join(' ')}\n${table}`
}

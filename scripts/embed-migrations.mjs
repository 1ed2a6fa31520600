/**
 * Copies the numbered migrations into a module, so that they are found wherever the package is bundled to.
 *
 *   node scripts/embed-migrations.mjs            writes src/postgres/migrations.generated.ts
 *   node scripts/embed-migrations.mjs --check    exits with 1 if that file is not up to date
 *   node scripts/embed-migrations.mjs [--check] <directory> <file>
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const args = process.argv.slice(2).filter((arg) => arg !== '--check')
const check = process.argv.includes('--check')
const [directory, target] = args.length > 0 ? args : ['src/postgres/migrations', 'src/postgres/migrations.generated.ts']
const root = fileURLToPath(new URL('..', import.meta.url))
const HEADER = `// Generated from the numbered .sql files by \`node scripts/embed-migrations.mjs\`: edit those, then run it.\n`

try {
  const generated = render(readMigrations(path.resolve(root, directory)))
  const file = path.resolve(root, target)
  const current = readIfPresent(file)
  if (check && current !== generated) fail(`${target} is out of date: run \`node scripts/embed-migrations.mjs\``)
  // An unchanged file keeps its time, so that an incremental build has nothing to do.
  if (!check && current !== generated) writeFileSync(file, generated)
} catch (error) {
  fail(error.message)
}

/** `001_inbox.sql`, `002_outbox.sql`, …: a gap or a number used twice is two people's work merged wrongly. */
function readMigrations(folder) {
  const files = readdirSync(folder)
    .filter((name) => !name.startsWith('.'))
    .sort()
  if (files.length === 0) throw new Error(`${directory} has no migrations`)
  return files.map((name, index) => {
    const match = /^(\d{3})_([a-z0-9_]+)\.sql$/.exec(name)
    if (!match) throw new Error(`${directory}/${name}: migrations are named NNN_name.sql`)
    const version = Number(match[1])
    if (version !== index + 1) throw new Error(`${directory}/${name}: expected number ${pad(index + 1)} here`)
    const sql = readFileSync(path.join(folder, name), 'utf8').replaceAll('\r\n', '\n')
    if (sql.trim() === '') throw new Error(`${directory}/${name} is empty`)
    return { version, name: match[2], sql }
  })
}

function render(migrations) {
  const entries = migrations.map(
    ({ version, name, sql }) =>
      `  {\n    version: ${version},\n    name: '${name}',\n    sql: ${literal(sql)},\n  },\n`,
  )
  const type = 'readonly { version: number; name: string; sql: string }[]'
  return `${HEADER}\nexport const MIGRATIONS: ${type} = [\n${entries.join('')}]\n`
}

function literal(text) {
  return `\`${text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')}\``
}

function readIfPresent(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function pad(number) {
  return String(number).padStart(3, '0')
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

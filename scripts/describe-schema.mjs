/**
 * Describes the schema that the migrations make, for the doctor to compare with: they run on an embedded PostgreSQL, and what is
 * there afterwards is written down. Part of `npm run build`, behind the compiler: what it writes is compiled once more.
 *
 *   node scripts/describe-schema.mjs            writes src/admin/doctor/expected.generated.ts if the migrations have changed
 *   node scripts/describe-schema.mjs --check    exits with 1 if that file is of other migrations
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = fileURLToPath(new URL('../src/admin/doctor/expected.generated.ts', import.meta.url))
const migrations = readFileSync(new URL('../src/postgres/migrations.generated.ts', import.meta.url))
const looking = readFileSync(new URL('../src/postgres/sql/doctor-server.ts', import.meta.url))
const stamp = createHash('sha256').update(migrations).update(looking).digest('hex').slice(0, 16)

const isCurrent = existsSync(target) && readFileSync(target, 'utf8').includes(`// Of ${stamp}.`)
if (!isCurrent && process.argv.includes('--check')) {
  console.error('src/admin/doctor/expected.generated.ts is out of date: run `npm run build`')
  process.exit(1)
}
if (!isCurrent) {
  writeFileSync(target, render(await describe()))
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  for (const project of ['tsconfig.build.json', 'tsconfig.cjs.json']) {
    execFileSync(process.execPath, [compiler, '-p', project], { cwd: root, stdio: 'inherit' })
  }
}

async function describe() {
  const dist = (file) => import(new URL(`../dist/${file}`, import.meta.url).href)
  const { PGlite } = await import('@electric-sql/pglite')
  const { migrationSql } = await dist('index.js')
  const { bindTo } = await dist('postgres/database.js')
  const { LOOK_OBJECTS } = await dist('postgres/sql/doctor-server.js')
  const db = new PGlite()
  try {
    await db.exec(migrationSql({ schema: 'described' }))
    const bind = bindTo('described')
    return (await db.query(bind(LOOK_OBJECTS), [JSON.stringify({ own: bind('ob.') })])).rows
  } finally {
    await db.close()
  }
}

function render(rows) {
  const lines = rows.map(
    ({ kind, name, detail }) => `  [${[kind, name, detail].map((text) => JSON.stringify(text)).join(', ')}],\n`,
  )
  return `// Generated from the migrations by \`node scripts/describe-schema.mjs\`, which \`npm run build\` runs. Of ${stamp}.
import type { ObjectRow } from '../../postgres/sql/doctor-server.js'

/** What the migrations make: kind, name, detail. */
export const EXPECTED: readonly (readonly [ObjectRow['kind'], string, string])[] = [
${lines.join('')}]
`
}

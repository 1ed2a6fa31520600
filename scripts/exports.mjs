/**
 * What package.json and tsconfig.json say of each path that users import follows from one line, the ES module behind it:
 *
 *   "exports": { "./x": "./dist/…/x.js" }
 *
 *   node scripts/exports.mjs            completes that line: both formats with their types, and the paths of tsconfig.json
 *   node scripts/exports.mjs --check    exits with 1 if there is something to complete
 *   node scripts/exports.mjs [--check] <directory>
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const check = process.argv.includes('--check')
const [directory = fileURLToPath(new URL('..', import.meta.url))] = process.argv
  .slice(2)
  .filter((arg) => arg !== '--check')
const manifest = JSON.parse(read('package.json'))
/** As [key, file in dist without its extension], in the order of package.json. */
const modules = Object.entries(manifest.exports)
  .filter(([key]) => key !== './package.json')
  .map(([key, value]) => [key, fileOf(key, value)])

put('package.json', `${JSON.stringify(complete(manifest), null, 2)}\n`)
put(
  'tsconfig.json',
  read('tsconfig.json').replace(/"paths": \{[^}]*\}/, () => `"paths": ${paths()}`),
)

function complete({ main: _main, types: _types, typesVersions: _typesVersions, ...rest }) {
  const before = Object.entries(rest).filter(([field]) => field !== 'exports')
  const at = before.findIndex(([field]) => field === 'files') + 1
  return Object.fromEntries([
    ...before.slice(0, at),
    ['main', './dist/cjs/index.js'],
    ['types', './dist/cjs/index.d.ts'],
    ['exports', { ...Object.fromEntries(modules.map(formats)), './package.json': './package.json' }],
    // For compilers that do not know `exports`: moduleResolution node10, which module commonjs had as its default.
    ['typesVersions', { '*': Object.fromEntries(modules.slice(1).map(declaration)) }],
    ...before.slice(at),
  ])
}

function formats([key, file]) {
  const format = (directory) => ({
    types: `./${directory}/${file}.d.ts`,
    default: `./${directory}/${file}.js`,
  })
  return [key, { import: format('dist'), require: format('dist/cjs') }]
}

function declaration([key, file]) {
  return [key.slice('./'.length), [`./dist/cjs/${file}.d.ts`]]
}

function paths() {
  const lines = modules.map(([key, file]) => `      "oncebox${key.slice(1)}": ["./src/${file}.ts"]`)
  return `{\n${lines.join(',\n')}\n    }`
}

function fileOf(key, value) {
  const given = typeof value === 'string' ? value : value.import?.default
  const [, file] = /^\.\/dist\/(?!cjs\/)(.+)\.js$/.exec(given ?? '') ?? []
  if (file === undefined) fail(`exports of package.json: ${key} must lead to ./dist/….js; got ${JSON.stringify(value)}`)
  return file
}

function put(name, text) {
  if (read(name) === text) return
  if (check) fail(`${name} does not say all of a path in exports: run \`node scripts/exports.mjs\``)
  writeFileSync(pathOf(name), text)
}

function read(name) {
  return readFileSync(pathOf(name), 'utf8')
}

function pathOf(name) {
  return path.join(directory, name)
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

/**
 * Runs the tests on every version that is promised: `npm run matrix`, or some of it: `npm run matrix -- postgres-14 clients`.
 *
 * `--only=<part of a path>` runs the test files of each cell whose path contains it.
 *
 * Failures are named as they happen. What is known of a cell is kept in node_modules/.cache/oncebox-matrix: its tests one by
 * one in <cell>.jsonl, and the table so far in report.json, in case it is stopped before its end.
 *
 * Each cell runs in a copy of the checkout, with a node_modules of its own, so that an old client in it harms nobody. A cell
 * that fails does not stop the others; the table at the end says what passed, and the exit code whether all did.
 */
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { CELLS } from './cells.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Its native build needs a download that not every machine can make; a failed installation is told, not hidden. */
const MAY_NOT_INSTALL = new Set(['@confluentinc/kafka-javascript'])

const REPORTS = path.join(ROOT, 'node_modules/.cache/oncebox-matrix')
const options = process.argv.slice(2)
const only = options.find((one) => one.startsWith('--only='))?.slice('--only='.length)
const asked = options.filter((one) => !one.startsWith('--only='))
if (asked.includes('--list') || asked.includes('--help')) {
  for (const { name, about } of CELLS) console.log(name.padEnd(14), about)
  process.exit(0)
}
const unknown = asked.filter((name) => !CELLS.some((cell) => cell.name === name))
if (unknown.length > 0) {
  console.error(`there is no cell ${unknown.join(', ')}; npm run matrix -- --list names them`)
  process.exit(2)
}

await mkdir(REPORTS, { recursive: true })
const results = []
for (const cell of CELLS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  console.log(`\n── ${cell.name}: ${cell.about}`)
  const started = Date.now()
  const result = await runCell(cell).catch((error) => ({ passed: 0, failed: ['the cell itself'], note: error.message }))
  results.push({ ...cell, ...result, minutes: (Date.now() - started) / 60_000 })
  await writeFile(path.join(REPORTS, 'report.json'), JSON.stringify(results, undefined, 2))
}

console.log('\ncell           passed  failed  minutes')
for (const { name, passed, failed, minutes, note } of results) {
  const counts = [String(passed).padStart(6), String(failed.length).padStart(7), minutes.toFixed(1).padStart(8)]
  console.log(name.padEnd(14), counts.join(' '), note ? ` ${note}` : '')
  for (const test of failed) console.log(`    ✗ ${test}`)
}
process.exitCode = results.every(({ failed }) => failed.length === 0) ? 0 : 1

async function runCell(cell) {
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-matrix-'))
  try {
    await copyCheckout(directory)
    const note = cell.lowest ? await installLowest(directory) : undefined
    const node = cell.node ? await installNode(directory, cell.node) : process.execPath
    await run('npm', ['run', 'build', '--silent'], { cwd: directory })
    const report = path.join(REPORTS, `${cell.name}.jsonl`)
    await writeFile(report, '')
    const env = {
      ...process.env,
      ONCEBOX_MATRIX_REPORT: report,
      ...(cell.postgres && { ONCEBOX_TEST_POSTGRES: `embedded:${cell.postgres}` }),
    }
    // The tests start processes with the Node.js that runs them.
    const tests = only === undefined ? cell.tests : await filesOf(cell.tests)
    const vitest = [path.join(directory, 'node_modules/vitest/vitest.mjs'), 'run', ...tests]
    const how = ['--typecheck.enabled=false', '--reporter=./tools/matrix/reporter.mjs']
    const ended = await run(node, [...vitest, ...how], { cwd: directory, env }).catch((error) => error)
    const found = await summary(report)
    // It failed, and no test says why: of an error outside of every test, say.
    if (ended instanceof Error && found.failed.length === 0) found.failed.push(ended.message)
    return { ...found, note }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Links instead of copies, where the file system lets us: npm replaces files, and never writes into them. */
async function copyCheckout(directory) {
  const { output } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    quiet: true,
  })
  for (const file of output.split('\n').filter(Boolean)) {
    await mkdir(path.dirname(path.join(directory, file)), { recursive: true })
    await cp(path.join(ROOT, file), path.join(directory, file)).catch((error) => {
      // Deleted, and not committed yet.
      if (error.code !== 'ENOENT') throw error
    })
  }
  const modules = [path.join(ROOT, 'node_modules'), path.join(directory, 'node_modules')]
  await run('cp', ['-al', ...modules], { quiet: true }).catch(() => run('cp', ['-a', ...modules], { quiet: true }))
}

async function installLowest(directory) {
  const { peerDependencies } = JSON.parse(await readFile(path.join(directory, 'package.json'), 'utf8'))
  const lowest = []
  // Those of any version have their oldest in the tests of their own.
  const limited = Object.entries(peerDependencies).filter(([, range]) => range !== '*')
  for (const [name, range] of limited) lowest.push(await lowestOf(name, range))
  console.log(`   ${lowest.join('  ')}`)
  const install = (packages) =>
    run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--legacy-peer-deps', ...packages], {
      cwd: directory,
      quiet: true,
    })
  const optional = lowest.filter((one) => MAY_NOT_INSTALL.has(one.slice(0, one.lastIndexOf('@'))))
  const needed = lowest.filter((one) => !optional.includes(one))
  try {
    await install(lowest)
    return lowest.join(' ')
  } catch {
    await install(needed)
    return `${needed.join(' ')}; could not be installed here: ${optional.join(' ')}`
  }
}

async function lowestOf(name, range) {
  const { output } = await run('npm', ['view', `${name}@${range}`, 'version', '--json'], { quiet: true })
  // They come in no order.
  const [lowest] = [JSON.parse(output)].flat().sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  if (lowest === undefined) throw new Error(`no version of ${name} is ${range}`)
  return `${name}@${lowest}`
}

async function installNode(directory, version) {
  const home = path.join(directory, 'node')
  await mkdir(home)
  await run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', home, `node@${version}`], {
    cwd: home,
    quiet: true,
  })
  return path.join(home, 'node_modules/node/bin/node')
}

/** The test files under these paths whose own path contains what was asked for. */
async function filesOf(paths) {
  const { output } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...paths], {
    cwd: ROOT,
    quiet: true,
  })
  const files = output.split('\n').filter((file) => file.endsWith('.test.ts') && file.includes(only))
  if (files.length === 0) throw new Error(`no test file of this cell has ${only} in its path`)
  return files
}

async function summary(report) {
  const lines = (await readFile(report, 'utf8')).split('\n').filter(Boolean)
  const tests = lines.map((line) => JSON.parse(line))
  const failed = tests.filter(({ state }) => state === 'failed')
  return {
    passed: tests.filter(({ state }) => state === 'passed').length,
    failed: failed.map(({ file, test }) => (test === undefined ? `${file}: could not be run` : `${file}: ${test}`)),
  }
}

function run(program, args, { cwd = ROOT, env = process.env, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env,
      stdio: ['ignore', quiet ? 'pipe' : 'inherit', quiet ? 'pipe' : 'inherit'],
    })
    let output = ''
    let errors = ''
    child.stdout?.on('data', (chunk) => (output += chunk))
    child.stderr?.on('data', (chunk) => (errors += chunk))
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0
        ? resolve({ output })
        : reject(new Error(`${program} ${args[0]} ended with ${code}: ${errors.trim().split('\n').at(-1) ?? ''}`)),
    )
  })
}

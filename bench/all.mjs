/**
 * `npm run bench:all [-- --short]`: measures all that docs/benchmarks.md shows, one after the other, into bench/results, and writes
 * the page. `--short` is to see that it works: its figures say nothing.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const isShort = process.argv.includes('--short')
const here = fileURLToPath(new URL('.', import.meta.url))
const RUNS = {
  peers: ['peers/run.mjs', ...(isShort ? ['--repeats', '2', '--messages', '4000'] : ['--repeats', '5'])],
  limit: [
    'run.mjs',
    ...(isShort ? ['--quick', '--repeats', '2', '--messages', '2000'] : ['--quick', '--repeats', '5']),
  ],
  clients: ['clients.mjs'],
  brokers: ['brokers.mjs', ...(isShort ? ['--repeats', '2', '--messages', '1000'] : ['--repeats', '5'])],
}

for (const [name, [program, ...args]] of Object.entries(RUNS)) {
  const began = performance.now()
  const stdout = run(program, ...args, '--json')
  writeFileSync(`${here}results/${name}.json`, stdout)
  process.stderr.write(`${name}: ${Math.round((performance.now() - began) / 1_000)} s\n`)
}
run('page.mjs')

function run(program, ...args) {
  const options = { stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 2 ** 26, encoding: 'utf8' }
  const { status, stdout } = spawnSync(process.execPath, [`${here}${program}`, ...args], options)
  if (status !== 0) throw new Error(`${program} ended with ${status}`)
  return stdout
}

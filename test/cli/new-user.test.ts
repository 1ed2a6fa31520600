/** The first two minutes of a new user, with the package as it is packed: an empty directory, two packages, two commands. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOT, start } from './project.js'

const run = promisify(execFile)
const INSTALL_TIMEOUT_MS = 170_000
let directory: string

beforeAll(async () => {
  if (!existsSync(path.join(ROOT, 'dist/cli/main.js'))) throw new Error('there is no dist to pack: run `npm run build`')
  directory = await realpath(await mkdtemp(path.join(tmpdir(), 'oncebox-new-user-')))
  await chmod(directory, 0o755)
})
afterAll(() => rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))

test('npm install, oncebox init, oncebox dev: a message is handled and seen, and the test that was written passes', async () => {
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory]
  const { stdout } = await run('npm', pack, { cwd: ROOT, maxBuffer: 64 << 20 })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['install', ...quiet, `./${filename}`, 'pg'], { cwd: directory, timeout: INSTALL_TIMEOUT_MS })

  const init = start(['npx', 'oncebox', 'init', '--yes'], directory, { npm_config_prefer_offline: 'true' })
  expect(await init.exited, init.stderr).toBe(0)
  const manifest = await readFile(path.join(directory, 'package.json'), 'utf8')

  // npx hands signals on, but not to whom npm's shell has started: the program itself is told to end.
  const dev = start([process.execPath, 'node_modules/.bin/oncebox', 'dev'], directory)
  await dev.saw(/handled {6}greeting\.asked \S+ by greet in [\d.]+ ms\n/)
  expect(dev.stdout).toContain('Hello, Ada!\n')
  dev.kill('SIGINT')
  expect(await dev.exited).toBe(0)

  const tested = start(['npm', 'test'], directory)
  expect(await tested.exited, tested.stdout + tested.stderr).toBe(0)
  const again = start(['npx', 'oncebox', 'init', '--yes'], directory)
  expect(await again.exited, again.stderr).toBe(0)
  expect(again.stderr).toContain('there is nothing to do')
  expect(await readFile(path.join(directory, 'package.json'), 'utf8')).toBe(manifest)
})

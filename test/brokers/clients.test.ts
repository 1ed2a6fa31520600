/** Without the clients of the brokers. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const DIST = fileURLToPath(new URL('../../dist', import.meta.url))

test.each([
  ['nats', { url: 'nats://x', stream: 's', consumer: 'c', subject: 'a' }, '@nats-io/transport-node @nats-io/jetstream'],
  ['redis', { url: 'redis://x', stream: 's', group: 'g', to: 's' }, 'redis'],
])('source and sink of %s say what to install', async (name, options, packages) => {
  if (!existsSync(path.join(DIST, 'index.js'))) throw new Error('there is no dist: run `npm run build`')
  // Where no node_modules is above.
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-clients-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await cp(DIST, path.join(directory, 'dist'), { recursive: true })
  await writeFile(path.join(directory, 'package.json'), '{"type":"module"}')
  const program = `
    import { ${name} } from './dist/brokers/${name}/index.js'
    const both = ${name}(${JSON.stringify(options)})
    const show = ({ code, message }) => console.log(code, message)
    await both.start(async () => []).catch(show)
    await both.publish([]).catch(show)
    await both.stop()
    await both.close()`
  await writeFile(path.join(directory, 'main.js'), program)
  const { stdout } = await run(process.execPath, ['main.js'], { cwd: directory })
  const lines = stdout.trim().split('\n')
  expect(lines).toHaveLength(2)
  for (const line of lines) expect(line).toMatch(new RegExp(`^OPTION_INVALID .*: npm install ${packages}$`))
})

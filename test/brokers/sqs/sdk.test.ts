/** Without the AWS SDK. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const DIST = fileURLToPath(new URL('../../../dist', import.meta.url))

beforeAll(() => {
  if (!existsSync(path.join(DIST, 'brokers/sqs/index.js'))) throw new Error('there is no dist: run `npm run build`')
})

const PROGRAM = `
import { sqs } from './dist/brokers/sqs/index.js'
const queue = sqs({ queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders' })
const show = ({ code, message }) => console.log(code, message)
await queue.start(async () => []).catch(show)
await queue.publish([]).catch(show)
await queue.stop()
await queue.close()
`

test('source and sink say what to install', async () => {
  // Where no node_modules is above.
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-sqs-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await cp(DIST, path.join(directory, 'dist'), { recursive: true })
  await writeFile(path.join(directory, 'package.json'), '{"type":"module"}')
  await writeFile(path.join(directory, 'main.js'), PROGRAM)
  const { stdout } = await run(process.execPath, ['main.js'], { cwd: directory })
  const advice = 'OPTION_INVALID sqs needs the AWS SDK: npm install @aws-sdk/client-sqs\n'
  expect(stdout).toBe(advice.repeat(2))
})

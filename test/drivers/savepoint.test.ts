/** A connection that dies inside a savepoint of postgres.js, in a process of its own: an error that nobody catches ends it. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { sharedDatabaseUrl } from '../support/postgres.js'

const CHILD = fileURLToPath(new URL('./savepoint-child.mjs', import.meta.url))

test('postgres.js: a connection that dies inside a savepoint fails its transaction, and the process lives', async () => {
  const child = spawn(process.execPath, [CHILD], { env: { ...process.env, DATABASE_URL: sharedDatabaseUrl() } })
  let output = ''
  let errors = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const timer = setTimeout(() => child.kill('SIGKILL'), 90_000)
  const code = await new Promise((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  expect(errors).toBe('')
  const lines = output.trim().split('\n')
  expect({ code, last: lines.pop() }).toEqual({ code: 0, last: 'ended' })
  expect(lines).toHaveLength(8)
  for (const line of lines) expect(JSON.parse(line)).not.toMatchObject({ outcome: 'committed' })
})

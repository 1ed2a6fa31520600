import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../scripts/embed-migrations.mjs', import.meta.url))
const run = promisify(execFile)

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'oncebox-migrations-'))
  await mkdir(path.join(folder, 'sql'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function embed(...flags: string[]): Promise<{ code: number; stderr: string }> {
  return run(process.execPath, [SCRIPT, ...flags, path.join(folder, 'sql'), path.join(folder, 'out.ts')]).then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  )
}

const write = (name: string, sql: string) => writeFile(path.join(folder, 'sql', name), sql)

describe('embedding the migrations', () => {
  test('keeps every byte of the SQL, whatever it would mean to JavaScript', async () => {
    const sql = "select E'\\\\n', `x`, '${y}', $1, 'é\u2028'; -- \\\n"
    await write('001_first.sql', sql)
    await write('002_second_one.sql', 'select 2')
    expect(await embed()).toEqual({ code: 0, stderr: '' })

    const source = await readFile(path.join(folder, 'out.ts'), 'utf8')
    expect(source).toMatch(/^\/\/ Generated .*embed-migrations/)
    const plain = path.join(folder, 'out.mjs')
    await writeFile(plain, source.replace(/: readonly \{.*\}\[\] =/, ' ='))
    const module = (await import(/* @vite-ignore */ pathToFileURL(plain).href)) as { MIGRATIONS: unknown }
    expect(module.MIGRATIONS).toEqual([
      { version: 1, name: 'first', sql },
      { version: 2, name: 'second_one', sql: 'select 2' },
    ])
  })

  test('a stale file fails the check, and the message says what to run', async () => {
    await write('001_first.sql', 'select 1')
    expect((await embed('--check')).code).toBe(1)
    await embed()
    expect(await embed('--check')).toEqual({ code: 0, stderr: '' })

    await write('001_first.sql', 'select 1 -- changed')
    const { code, stderr } = await embed('--check')
    expect(code).toBe(1)
    expect(stderr).toContain('run `node scripts/embed-migrations.mjs`')
  })

  test.each([
    ['a gap', ['001_a.sql', '003_c.sql']],
    ['a number used twice', ['001_a.sql', '001_b.sql']],
    ['a first that is not 001', ['002_a.sql']],
    ['another name', ['001_a.sql', 'notes.txt']],
    ['no migration at all', []],
  ])('%s is refused', async (_, names) => {
    for (const name of names) await write(name, 'select 1')
    expect((await embed()).code).toBe(1)
  })
})

/** The packed package under the two checkers that the ecosystem goes by: are the types right, are the fields right. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { pack } from '../toolchains/project.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
let tarball: string
beforeAll(async () => {
  tarball = await pack()
})
afterAll(() => rm(path.dirname(tarball), { recursive: true }))

test('are the types wrong? not under any resolution, of any path', async () => {
  const checked = await checkPackage(createPackageFromTarballData(await readFile(tarball)))
  if (checked.types === false) throw new Error('the package has no types')
  const { exports } = JSON.parse(await readFile(path.join(ROOT, 'package.json'), 'utf8')) as { exports: object }
  const looked = Object.keys(checked.entrypoints)
  expect(looked.sort()).toEqual(Object.keys(exports).sort())
  expect(checked.problems).toEqual([])
})

test('the types need no TypeScript above 5.4, for which buffers and arrays of bytes are not generic', async () => {
  const dist = path.join(ROOT, 'dist')
  const files = (await readdir(dist, { recursive: true })).filter((file) => file.endsWith('.d.ts'))
  const texts = await Promise.all(
    files.map(async (file) => [file, await readFile(path.join(dist, file), 'utf8')] as const),
  )
  const generic = texts.filter(([, text]) => /\b(Buffer|Uint8Array)</.test(text)).map(([file]) => file)
  expect(files.length).toBeGreaterThan(100)
  expect(generic).toEqual([])
})

test('publint has nothing to say', async () => {
  const { buffer, byteOffset, byteLength } = await readFile(tarball)
  const data = buffer.slice(byteOffset, byteOffset + byteLength)
  const { messages, pkg } = await publint({ pack: { tarball: data } })
  expect(messages.map((message) => formatMessage(message, pkg))).toEqual([])
})

test('what only a publisher knows is asked for before anything is published', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-publisher-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const file = path.join(directory, 'package.json')
  const urls = { repository: { url: 'git+https://github.com/OWNER/oncebox.git' }, bugs: { url: 'OWNER' } }
  await writeFile(file, JSON.stringify({ name: 'oncebox', author: 'OWNER', ...urls }))
  const publisher = (...args: string[]) =>
    promisify(execFile)(process.execPath, [path.join(ROOT, 'scripts/publisher.mjs'), ...args], { cwd: directory })

  await expect(publisher('--check')).rejects.toMatchObject({ code: 1 })
  await publisher('acme/oncebox', 'Acme <acme@example.com>')
  await publisher('--check')
  const { author, homepage, repository, bugs } = JSON.parse(await readFile(file, 'utf8'))
  expect([author, homepage, repository.url, bugs.url]).toEqual([
    'Acme <acme@example.com>',
    'https://github.com/acme/oncebox#readme',
    'git+https://github.com/acme/oncebox.git',
    'https://github.com/acme/oncebox/issues',
  ])
})

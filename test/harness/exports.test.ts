/** The script that completes what package.json and tsconfig.json say of a path that users import. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../scripts/exports.mjs', import.meta.url))
const run = (...args: string[]) => promisify(execFile)(process.execPath, [SCRIPT, ...args])

async function project(exports: Record<string, string>): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-exports-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const manifest = { name: 'oncebox', files: ['dist'], exports, scripts: {} }
  await writeFile(path.join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  await writeFile(path.join(directory, 'tsconfig.json'), '{\n  "compilerOptions": {\n    "paths": {}\n  }\n}\n')
  return directory
}

test('a path that was added in one line is complete after the script, and not before', async () => {
  const directory = await project({ '.': './dist/index.js', './x': './dist/some/x.js' })
  await expect(run('--check', directory)).rejects.toMatchObject({ code: 1 })
  await run(directory)
  await run('--check', directory)

  const manifest = JSON.parse(await readFile(path.join(directory, 'package.json'), 'utf8'))
  expect(manifest.exports['./x']).toEqual({
    import: { types: './dist/some/x.d.ts', default: './dist/some/x.js' },
    require: { types: './dist/cjs/some/x.d.ts', default: './dist/cjs/some/x.js' },
  })
  expect(manifest.typesVersions).toEqual({ '*': { x: ['./dist/cjs/some/x.d.ts'] } })
  expect(manifest.main).toBe('./dist/cjs/index.js')
  const { compilerOptions } = JSON.parse(await readFile(path.join(directory, 'tsconfig.json'), 'utf8'))
  expect(compilerOptions.paths).toEqual({ oncebox: ['./src/index.ts'], 'oncebox/x': ['./src/some/x.ts'] })
})

test('a path that leads out of dist is refused', async () => {
  const directory = await project({ '.': './dist/index.js', './x': './src/x.ts' })
  await expect(run(directory)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('./x') })
})

/**
 * The types of the database clients and of Nest, as the package declares them, in compilers from the oldest to the newest.
 * Each compiles the type tests, refusals included.
 *
 * `npm test` tries the newest, and its own. All of them: ONCEBOX_TOOLCHAINS=all npx vitest run test/toolchains
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { installed } from '../support/installed.js'
import { TYPESCRIPTS } from './cells.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TYPES = path.join(ROOT, 'test/types')
const OF_CLIENTS = /^(clients-.*|drivers|nest|front-doors)\.test-d\.ts$/
const tried = process.env['ONCEBOX_TOOLCHAINS'] === 'all' ? TYPESCRIPTS : TYPESCRIPTS.slice(-1)

test.each(tried)(
  'TypeScript %s takes and refuses what the types of the clients say',
  { timeout: 600_000 },
  async (version) => {
    const { directory } = await installed(`typescript-${version}`, [`typescript@${version}`])
    // Inside of the package, where its own name means what is built.
    const home = await mkdtemp(path.join(ROOT, 'node_modules/.cache/oncebox-types-'))
    try {
      await writeFile(path.join(home, 'tsconfig.json'), JSON.stringify(await config()))
      const args = [path.join(directory, 'node_modules/typescript/bin/tsc'), '-p', home, '--pretty', 'false']
      const found = await promisify(execFile)(process.execPath, args).catch((error: { stdout: string }) => error)
      expect(found.stdout).toBe('')
    } finally {
      await rm(home, { recursive: true })
    }
  },
)

async function config(): Promise<object> {
  const files = (await readdir(TYPES)).filter((name) => OF_CLIENTS.test(name)).map((name) => path.join(TYPES, name))
  const compilerOptions = {
    ...{ target: 'ES2022', lib: ['ES2023', 'ESNext.Disposable'], module: 'NodeNext', moduleResolution: 'NodeNext' },
    ...{ strict: true, noUncheckedIndexedAccess: true, skipLibCheck: true, experimentalDecorators: true, noEmit: true },
    ...{ types: ['node'], typeRoots: [path.join(ROOT, 'node_modules/@types')] },
  }
  return { compilerOptions, files }
}

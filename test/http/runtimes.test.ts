/** Bun and Deno, installed on demand, run the box and the recipes of the page about frameworks. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { recipesOf } from '../docs/recipe.js'
import { useServer } from '../inbox/fixture.js'
import { installed } from '../support/installed.js'
import { freePort } from '../support/postgres.js'
import { spawnChild } from '../support/processes.js'
import { bodyOf, SECRETS, sign } from '../webhook/senders.js'

const server = useServer('runtimes')
const CHILD = fileURLToPath(new URL('./children/hook.mjs', import.meta.url))
const recipes = recipesOf('docs/frameworks.md')
const RUNTIMES = [
  ['bun', []],
  ['deno', ['run', '--allow-all', '--no-lock', '--node-modules-dir=manual']],
] as const

let directory: string
beforeAll(async () => {
  // Their scripts put the program in its place.
  ;({ directory } = await installed('runtimes', ['bun@1.4.4', 'deno@2.9.6'], { scripts: true }))
})

test.for(RUNTIMES)('a signed request is handled once, and a forged one refused: %s', async ([runtime, execArgv]) => {
  await using box = await server.open()
  const port = await freePort()
  const recipe = recipes.get(`${runtime}.ts`)!.replace('3000', String(port))
  // Beside the original, from where the package can be imported by its name.
  const script = CHILD.replace('.mjs', `-${process.pid}-${runtime}.mjs`)
  await writeFile(script, (await readFile(CHILD, 'utf8')).replace('/* SERVE */ export { hook }', recipe))
  try {
    const program = path.join(directory, 'node_modules/.bin', runtime)
    const env = { DATABASE_URL: server.url, HOOK_SECRET: SECRETS.standard, HOOK_SCHEMA: box.schema }
    const child = spawnChild(script, { program, execArgv: [...execArgv], env })
    await child.next('listening')
    const sent = await sign('standard', bodyOf('standard', '', { text: 'ü' }))
    const post = async (body: string): Promise<[number, unknown]> => {
      const response = await fetch(`http://localhost:${port}/hook`, { method: 'POST', headers: sent.headers, body })
      return [response.status, await response.json()]
    }
    expect(await post(sent.body)).toEqual([200, { status: 'handled' }])
    expect(await post(sent.body)).toEqual([200, { status: 'duplicate' }])
    expect(await post(`${sent.body} `)).toMatchObject([401, {}])
    expect(await box.ids()).toEqual(['msg_1'])
    await child.kill()
  } finally {
    await rm(script, { force: true })
  }
})

/**
 * The recipes of the page about frameworks in Next.js itself: built, started, and asked by a real client.
 *
 * `npm test` calls them as Next.js does, in test/docs/frameworks. This one installs 330 MB:
 * ONCEBOX_FRAMEWORKS=all npx vitest run test/http/next.test.ts
 */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recipesOf } from '../docs/recipe.js'
import { useServer, type Bench } from '../inbox/fixture.js'
import { installed } from '../support/installed.js'
import { freePort } from '../support/postgres.js'
import { spawnChild, waitUntil } from '../support/processes.js'
import { pack } from '../toolchains/project.js'
import { bodyOf, SECRETS, sign } from '../webhook/senders.js'

const LONG = process.env['ONCEBOX_FRAMEWORKS'] === 'all'
const PACKAGES = ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1', 'pg@8.23.1']
const run = promisify(execFile)

const HOOK = `
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { webhook } from 'oncebox/webhook'
const db = fromPg(new pg.Pool({ connectionString: process.env.DATABASE_URL }))
const box = createBox({ db, schema: process.env.HOOK_SCHEMA })
const write = \`insert into "\${process.env.HOOK_SCHEMA}".test_ledger (consumer, id) values ('a', $1)\`
box.consumer('a', { note: async ({ id }, { tx }) => void (await tx.query(write, [id])) }, { mode: 'inline' })
export const hook = box.from(webhook({ scheme: 'standard', secret: process.env.HOOK_SECRET }), { types: 'any' })
`

describe.runIf(LONG)('in Next.js', () => {
  const server = useServer('next')
  const recipes = recipesOf('docs/frameworks.md')
  let box: Bench
  let home: string
  let url: string

  beforeAll(async () => {
    const { directory } = await installed('next', PACKAGES, { timeoutMs: 600_000 })
    const tarball = await pack()
    const own = path.join(directory, 'node_modules/oncebox')
    await rm(own, { recursive: true, force: true })
    await mkdir(own)
    await run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'])
    home = path.join(directory, `app-${process.pid}`)
    const given = `import { hook } from '../../hook.js'\n`
    const files: Record<string, string> = {
      'package.json': '{ "private": true }',
      'next.config.js': `module.exports = { turbopack: { root: ${JSON.stringify(directory)} } }`,
      'hook.js': HOOK,
      'app/layout.js': 'export default ({ children }) => <html lang="en"><body>{children}</body></html>',
      'app/hook/route.js': given + recipes.get('next.ts')!,
      'pages/api/hook.js': given + recipes.get('next-pages.ts')!,
    }
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(home, name)), { recursive: true })
      await writeFile(path.join(home, name), text)
    }
    box = await server.open()
    const env = {
      ...{ NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' as const },
      ...{ DATABASE_URL: server.url, HOOK_SECRET: SECRETS.standard, HOOK_SCHEMA: box.schema },
    }
    const next = path.join(directory, 'node_modules/next/dist/bin/next')
    await run(process.execPath, [next, 'build'], { cwd: home, env: { ...process.env, ...env }, timeout: 300_000 })
    const port = await freePort()
    spawnChild(next, { args: ['start', home, '-H', '127.0.0.1', '-p', String(port)], env })
    url = `http://127.0.0.1:${port}`
    await waitUntil(() => fetch(url).then(() => true, () => false), { timeoutMs: 60_000 }) // prettier-ignore
  }, 900_000)
  afterAll(async () => {
    await box?.[Symbol.asyncDispose]()
    if (home) await rm(home, { recursive: true, force: true })
  })

  test.each(['hook', 'api/hook'])('a signed request is handled once, and a forged one refused: /%s', async (at) => {
    const id = `msg_${at.replace('/', '_')}`
    const { headers, body } = await sign('standard', bodyOf('standard', '', { text: 'ü' }), { id })
    const post = async (sent: string): Promise<[number, unknown]> => {
      const response = await fetch(`${url}/${at}`, { method: 'POST', headers, body: sent })
      return [response.status, await response.json()]
    }
    expect(await post(body)).toEqual([200, { status: 'handled' }])
    expect(await post(body)).toEqual([200, { status: 'duplicate' }])
    expect(await post(`${body} `)).toMatchObject([401, {}])
    expect((await box.ids()).filter((one) => one === id)).toHaveLength(1)
  })
})

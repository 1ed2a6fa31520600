/** `oncebox dashboard`: who it lets in, where it listens, what it shows, and how it ends. */
import { request as httpRequest } from 'node:http'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from 'oncebox/dashboard/client'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { cli, seed, type CliOptions, type Ran } from './fixture.js'
import { openProject, type Project } from './project.js'

const TOKEN = 'f3b1c2d4e5f60718293a4b5c6d7e8f90'
let database: ScratchDatabase
let project: Project

beforeAll(async () => {
  database = await scratchDatabase('cli_dashboard')
  await seed(database.url, 'shop')
  await seed(database.url, 'billing')
  project = await openProject({})
})
afterAll(async () => {
  await project[Symbol.asyncDispose]()
  await database.close()
})

interface Serving {
  readonly url: string
  stop(): Promise<Ran>
}

async function serve(argv: readonly string[], env: CliOptions['env'] = {}): Promise<Serving> {
  const end = new AbortController()
  let written = ''
  const options = { env: { DATABASE_URL: database.url, ...env }, signal: end.signal }
  const ran = cli(['dashboard', '--schema', 'shop', '--port', '0', ...argv], { ...options, onOutput: (text) => void (written += text) }) // prettier-ignore
  const url = await waitUntil(() => /http:\S+\//.exec(written)?.[0])
  return {
    url,
    stop() {
      end.abort()
      return ran
    },
  }
}

test('on this machine it shows the box without a question, and Ctrl-C ends it: exit code 0', async () => {
  const { url, stop } = await serve([])
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  const client = createClient({ url })
  expect(await client.session({})).toMatchObject({ boxes: [{ name: 'shop' }], readOnly: false })
  expect((await client.overview({ box: 'shop' })).consumers.map(({ name }) => name)).toContain('pay')
  await client.pause({ box: 'shop', consumer: 'pay' })
  // Who acts is who has started it.
  expect((await client.audit({ box: 'shop' })).records[0]).toMatchObject({ action: 'pause', by: expect.stringContaining('@') as string }) // prettier-ignore
  const stream = await fetch(client.streamUrl('shop'))
  const { code, stdout, stderr } = await stop()
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).not.toContain(database.url)
  // It ends, cleanly or cut off.
  await stream.text().catch(() => undefined)
  await expect(fetch(url)).rejects.toThrow()
})

test('--base is the path that a proxy serves it under, which may take it away', async () => {
  const { url, stop } = await serve(['--base', '/ops/inbox'])
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/ops\/inbox\/$/)
  const { origin } = new URL(url)
  for (const at of ['/ops/inbox', '/ops/inbox/', '/ops/inbox?a=1', '/ops/inbox/messages', '/', '/?a=1', '/messages']) {
    const page = await fetch(origin + at)
    expect([at, page.status]).toEqual([at, 200])
    expect(await page.text()).toContain('<base href="/ops/inbox/">')
  }
  for (const at of ['/ops/inboxes', '/ops', '/ops/inbox/ops/inbox']) expect((await fetch(origin + at)).status).toBe(404)
  for (const at of [url, origin]) expect((await createClient({ url: at }).session({})).boxes).toHaveLength(1)
  expect((await stop()).code).toBe(0)
})

test('without a token it answers no other name, and nothing that came through a proxy', async () => {
  const { url, stop } = await serve([])
  const statusOf = (headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      httpRequest(`${url}api/v1/session`, { headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .on('error', reject)
        .end()
    })
  expect(await statusOf({})).toBe(200)
  expect(await statusOf({ host: 'evil.example.com' })).toBe(403)
  expect(await statusOf({ 'x-forwarded-for': '192.0.2.7' })).toBe(403)
  const refused = await fetch(`${url}api/v1/session`, { headers: { 'x-forwarded-for': '192.0.2.7' } })
  const { error } = (await refused.json()) as { error: { code: string; message: string } }
  expect(error).toMatchObject({
    code: 'NOT_LOCAL',
    message: expect.stringContaining('ONCEBOX_DASHBOARD_TOKEN') as string,
  })
  expect(error.message).not.toMatch(/dev: true|authorize/)
  await stop()
})

test.for([
  [['--host', '0.0.0.0'], {}, /others can reach it, so it needs a token[\s\S]*ONCEBOX_DASHBOARD_TOKEN/],
  [['--host', '::'], {}, /needs a token/],
  [['--host', 'ops.example.com'], {}, /needs a token/],
  [[], { NODE_ENV: 'production' }, /NODE_ENV is production, so it needs a token/],
  [[], { ONCEBOX_DASHBOARD_TOKEN: 'short' }, /at least 20 characters/],
  [['--token-file', 'gone'], {}, /--token-file: gone cannot be read: ENOENT/],
] as const)('it refuses to start: %j %j', async ([argv, env, words]) => {
  const ran = await cli(['dashboard', '--schema', 'shop', '--port', '0', ...argv], {
    env: { DATABASE_URL: database.url, ...env },
  })
  expect(ran.code).toBe(2)
  expect(ran.stderr).toMatch(words)
})

test('a port that is taken, and a schema that is not there, are said in a line', async () => {
  const { url, stop } = await serve([])
  const env = { DATABASE_URL: database.url }
  const { port } = new URL(url)
  const taken = await cli(['dashboard', '--schema', 'shop', '--port', port], { env })
  expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining(`port ${port} of 127.0.0.1 is taken`) as string }) // prettier-ignore
  const also = await cli(['dashboard', '--schema', 'shop', '--also', 'nothing', '--port', '0'], { env })
  expect(also).toMatchObject({ code: 1, stderr: expect.stringContaining('oncebox migrate up --schema nothing') as string }) // prettier-ignore
  await stop()
})

test('with a token a browser asks for it, and its name is in the audit; the token is printed nowhere', async () => {
  await writeFile(path.join(project.directory, 'token'), `${TOKEN}\n`)
  const own = Object.values(networkInterfaces()).flat().find((one) => one && !one.internal && one.family === 'IPv4') // prettier-ignore
  const host = own?.address ?? '127.0.0.1'
  const { url, stop } = await serve(['--host', host, '--token-file', path.join(project.directory, 'token')])
  const refused = await fetch(url)
  expect(refused.status).toBe(401)
  expect(refused.headers.get('www-authenticate')).toContain('Basic')
  const basic = (name: string, word: string): Record<string, string> => ({ authorization: `Basic ${Buffer.from(`${name}:${word}`).toString('base64')}` }) // prettier-ignore
  for (const headers of [basic('ines', `${TOKEN}x`), basic('ines', ''), { authorization: 'Bearer' }, { authorization: 'Bearer x' }]) {
    expect((await fetch(`${url}api/v1/session`, { headers })).status).toBe(401)
  } // prettier-ignore
  const client = createClient({ url, headers: basic('ines', TOKEN) })
  await client.resume({ box: 'shop', consumer: 'pay' })
  expect((await client.audit({ box: 'shop' })).records[0]).toMatchObject({ action: 'resume', by: 'ines' })
  expect((await fetch(`${url}api/v1/session`, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200)
  const { stdout, stderr } = await stop()
  expect(stdout + stderr).not.toContain(TOKEN)
})

test('--read-only, --base, --environment and --also are what they say', async () => {
  const argv = ['--read-only', '--base', '/ops/inbox', '--environment', 'staging', '--also', 'billing']
  const { url, stop } = await serve(argv)
  expect(new URL(url).pathname).toBe('/ops/inbox/')
  const client = createClient({ url })
  expect(await client.session({})).toMatchObject({ readOnly: true, environment: 'staging', boxes: [{ name: 'shop' }, { name: 'billing' }] }) // prettier-ignore
  expect((await client.overview({ box: 'billing' })).consumers.map(({ name }) => name)).toContain('pay')
  await expect(client.pause({ box: 'shop', consumer: 'pay' })).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await stop()
})

test('the address that it prints is one that it answers under', async () => {
  const env = { ONCEBOX_DASHBOARD_TOKEN: TOKEN }
  for (const [argv, url] of [
    [['--host', '0.0.0.0', '--hosts', 'ops.example.com'], /^http:\/\/ops\.example\.com:\d+\/$/],
    [['--hosts', 'ops.example.com:8080,localhost'], /^http:\/\/ops\.example\.com:8080\/$/],
    [['--host', '0.0.0.0', '--hosts', 'ops.example.com,localhost'], /^http:\/\/localhost:\d+\/$/],
  ] as const) {
    const served = await serve(argv, env)
    expect(served.url).toMatch(url)
    await served.stop()
  }
})

test('beside oncebox dev it shows the database of that, as status does, unless another is named', async () => {
  await using beside = await openProject({
    'oncebox.config.mjs': `export default { schema: 'shop', box: () => { throw new Error('the box was made') } }\n`,
  })
  const home = path.join(beside.directory, 'node_modules/.cache/oncebox-dev')
  await mkdir(home, { recursive: true })
  const running = { pid: process.pid, server: process.pid, url: database.url }
  await writeFile(path.join(home, 'state.json'), JSON.stringify(running))
  const status = await cli(['status'], { cwd: beside.directory, env: {} })
  expect(status).toMatchObject({ code: 0, stderr: expect.stringContaining('the database of oncebox dev') as string })
  const end = new AbortController()
  let written = ''
  const ran = cli(['dashboard', '--port', '0'], {
    ...{ cwd: beside.directory, env: {}, signal: end.signal },
    onOutput: (text) => void (written += text),
  })
  const url = await Promise.race([waitUntil(() => /http:\S+\//.exec(written)?.[0]), ran.then(({ stderr }) => stderr)])
  expect(url).toMatch(/^http:/)
  expect(await createClient({ url }).session({})).toMatchObject({ boxes: [{ name: 'shop' }] })
  end.abort()
  expect((await ran).stderr).toContain('the database of oncebox dev')
})

test('as a process it takes the box of the config, and SIGTERM ends it', async () => {
  await project.write({
    'oncebox.config.mjs': `import pg from 'pg'
import { createBox } from 'oncebox'
import { defineConfig } from 'oncebox/config'
import { fromPg } from 'oncebox/pg'
export default defineConfig({
  box: () => createBox({ db: fromPg(new pg.Pool({ connectionString: process.env.SHOP_URL })), schema: 'shop' }),
})
`,
  })
  const command = project.oncebox(['dashboard', '--port', '0'], { SHOP_URL: database.url })
  await command.saw(/serving http:\S+\//)
  const client = createClient({ url: /http:\S+\//.exec(command.stderr)![0] })
  expect((await client.session({})).boxes).toEqual([{ name: 'shop', schema: 'shop' }])
  command.kill('SIGTERM')
  expect(await command.exited).toBe(0)
})

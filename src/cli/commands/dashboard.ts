/** `oncebox dashboard`: shows a box, or several of one database, in a browser. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../command.js'
import type { Connection } from '../connect/connect.js'
import { EXIT, misused } from '../exit.js'
import type { Io } from '../io.js'
import { flag, integer, text, texts } from '../option.js'
import { paint } from '../output/text.js'
import { signedBy } from '../shared/signed.js'
import { aborted } from '../shared/wait.js'

const TOKEN = 'ONCEBOX_DASHBOARD_TOKEN'
const TAKES_TOKEN = `set ${TOKEN}, or name a file with --token-file; openssl rand -hex 16 makes one`

export const dashboard = command({
  noun: 'dashboard',
  summary: 'Show the box in a browser: what is behind, what failed and why, and what to do about it.',
  details: [
    `Without a token it listens on this machine alone, answers nobody else, and lets everybody on it do everything. With one, in ${TOKEN} or in the file of --token-file, a browser asks for it: any name, which is for the audit, and the token as password. An address that others can reach needs one, and so does NODE_ENV=production. It speaks plain HTTP: give it to others behind a proxy that ends TLS, and name the proxy's host with --hosts.`,
    'No handler runs here. Ctrl-C ends it; a retry or discard that runs in it stops between two batches.',
  ],
  example: 'oncebox dashboard --read-only --port 8080',
  options: {
    port: integer('The port; 0 takes any that is free.', { least: 0, most: 65_535, fallback: 4_680 }),
    host: text('The address to listen at (default: 127.0.0.1).', 'address'),
    hosts: text('The names that it is reached under, with commas between them (default: any).', 'names'),
    base: text('The path that a proxy serves it under, such as /ops/inbox.', 'path'),
    tokenFile: text('A file with the token that lets people in; - for stdin.', 'path'),
    readOnly: flag('Nobody changes anything.'),
    environment: text('A badge, such as production.', 'name'),
    also: texts('Show the box of this schema of the database too.', 'schema'),
    open: flag('Open it in your browser.'),
  },
  connects: true,
  endless: true,
  async run({ options, io, out, connect }) {
    const { host = '127.0.0.1', port, base = '', readOnly, environment } = options
    const hosts = options.hosts === undefined ? undefined : namesIn(options.hosts)
    const token = await readToken(io, options.tokenFile)
    requireToken(token, host, io)
    const connection = await connect({ ownBox: 'not-beside-dev' })
    const { authorizeBy } = await import('../dashboard/who.js')
    const { serve } = await import('../dashboard/serve.js')
    const { dashboard: createDashboard } = await import('../../dashboard/index.js')
    const { explain } = await import('../explain.js')
    const ops = createDashboard(await boxesOf(connection, options.also ?? []), {
      authorize: authorizeBy({ token, by: signedBy({ by: undefined, reason: undefined }).by! }),
      onError: (error) => out.note(paint('red', 'oncebox:'), ` ${explain(error).message}`),
      ...{ base, readOnly },
      ...(environment !== undefined && { environment }),
      ...(hosts && { hosts }),
    })
    const served = await serve(ops, { host, port, base, hosts })
    out.note(paint('green', 'serving'), ' ', paint('bold', served.url), '; Ctrl-C ends it')
    if (options.open) await openBrowser(served.url)
    await aborted(io.signal)
    await served.stop()
    return EXIT.ok
  },
})

async function readToken(io: Io, file: string | undefined): Promise<string | undefined> {
  const token = file === undefined ? io.env[TOKEN] : await readSecret(io, file)
  if (token === undefined || (token === '' && file === undefined)) return undefined
  const { LEAST_TOKEN } = await import('../dashboard/who.js')
  const trimmed = token.trim()
  if (trimmed.length >= LEAST_TOKEN && !/\s/.test(trimmed)) return trimmed
  throw misused(
    `the token must have at least ${LEAST_TOKEN} characters, and no space`,
    'openssl rand -hex 16 makes one',
  )
}

async function readSecret({ cwd, stdin }: Io, file: string): Promise<string> {
  if (file === '-') {
    let given = ''
    for await (const chunk of stdin) given += String(chunk)
    return given
  }
  try {
    return await readFile(path.resolve(cwd, file), 'utf8')
  } catch (error) {
    throw misused(`--token-file: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`)
  }
}

function requireToken(token: string | undefined, host: string, { env }: Io): void {
  if (token !== undefined) return
  if (!/^(localhost|::1|127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i.test(host)) {
    throw misused(`at ${host} others can reach it, so it needs a token`, TAKES_TOKEN)
  }
  if (env['NODE_ENV'] === 'production') throw misused('NODE_ENV is production, so it needs a token', TAKES_TOKEN)
}

/** By schema. The one that was connected to is the first. */
async function boxesOf({ box, db, schema }: Connection, also: readonly string[]) {
  if (also.length === 0) return { [schema]: box }
  const { createBox } = await import('../../box.js')
  const { bindDatabase } = await import('../../postgres/database.js')
  const { checkVersion } = await import('../../postgres/migrate.js')
  const { explain } = await import('../explain.js')
  const others = await Promise.all(
    also.map(async (name) => {
      await checkVersion(bindDatabase(db.driver, name)).catch((error: unknown) => {
        throw explain(error, ` --schema ${name}`)
      })
      return [name, createBox({ db: db.driver, schema: name, telemetry: false })] as const
    }),
  )
  return { [schema]: box, ...Object.fromEntries(others) }
}

function namesIn(given: string): string[] {
  return given.split(',').map((name) => name.trim())
}

/** Where there is no such program, nothing is opened: the address was printed. */
async function openBrowser(url: string): Promise<void> {
  const programs: Readonly<Record<string, string>> = { darwin: 'open', win32: 'explorer' }
  const { spawn } = await import('node:child_process')
  const child = spawn(programs[process.platform] ?? 'xdg-open', [url], { stdio: 'ignore', detached: true })
  child.on('error', () => undefined).unref()
}

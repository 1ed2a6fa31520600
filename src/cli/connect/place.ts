/**
 * Which database: `--url` or `--url-file`, else `DATABASE_URL` or those of libpq's variables that name one, else the `url` of the config file, else the
 * embedded database that runs here, else the box of the config. A password in an argument is refused: other users of the host see it in `ps`.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { text as readStream } from 'node:stream/consumers'
import { escape } from '../../escape.js'
import type { OwnBox } from '../command.js'
import type { Config } from '../config.js'
import { embeddedUrl } from '../embedded.js'
import { failed, misused, type Exit } from '../exit.js'
import type { Io } from '../io.js'
import { hasPassword } from '../secrets.js'

export interface ConnectionOptions {
  readonly url: string | undefined
  readonly urlFile: string | undefined
  readonly schema: string | undefined
  readonly config: string | undefined
  readonly connectTimeout: number
}

export type Place =
  /** Undefined: of libpq's variables alone. */
  | { readonly url: string | undefined; readonly from: string; readonly embedded?: true }
  /** The box of the config, which has its own client. */
  | { readonly box: NonNullable<Config['box']>; readonly from: string }

/** Those of libpq's variables that say which database. A password, or a file of passwords, fits the URL of a config just as well. */
const LIBPQ = ['PGHOST', 'PGPORT', 'PGUSER', 'PGDATABASE']

export interface Search {
  readonly io: Io
  readonly options: ConnectionOptions
  /** The config's own box goes before the environment. */
  readonly ownBox: OwnBox | undefined
  config(): Promise<Config | undefined>
}

export async function findPlace({ io, options, ownBox, config }: Search): Promise<Place> {
  const { env } = io
  const given = await urlGiven(io, options)
  if (given !== undefined) return { url: given, from: options.url === undefined ? '--url-file' : '--url' }
  const box = ownBox ? (await config())?.box : undefined
  const isDev = ownBox === 'not-beside-dev' && !saysWhich(env) && (await embeddedUrl(io.cwd)) !== undefined
  if (box !== undefined && !isDev) return { box, from: 'the box of the config' }
  if (env['DATABASE_URL']) return { url: checkUrl(env['DATABASE_URL'], 'DATABASE_URL'), from: 'DATABASE_URL' }
  if (LIBPQ.some((name) => env[name])) return { url: undefined, from: "libpq's variables" }
  if (env['PGSERVICE'] && !isDev) throw ofService(env['PGSERVICE'])
  const found = await config()
  if (found?.url !== undefined) {
    const url = typeof found.url === 'function' ? await found.url() : found.url
    return { url: checkUrl(url, 'url of the config'), from: 'the config' }
  }
  // Beside `oncebox dev` its database is meant, and not what the box takes for want of DATABASE_URL.
  const url = await embeddedUrl(io.cwd)
  if (url !== undefined) return { url, from: 'the embedded database', embedded: true }
  if (found?.box !== undefined) return { box: found.box, from: 'the box of the config' }
  throw misused(
    'which database?',
    'set DATABASE_URL, or give --url postgres://user@host:5432/name, or write an oncebox.config file (oncebox init)',
  )
}

/** The URL of an argument; undefined without one. */
export async function urlGiven(
  io: Io,
  { url, urlFile }: Pick<ConnectionOptions, 'url' | 'urlFile'>,
): Promise<string | undefined> {
  if (url !== undefined && urlFile !== undefined) throw misused('give --url or --url-file, not both')
  if (url !== undefined) return checkArgument(url)
  return urlFile === undefined ? undefined : readUrl(io, urlFile)
}

/** Does the environment say which database, to the clients of boxes too? */
export function saysWhich(env: Io['env']): boolean {
  return Boolean(env['DATABASE_URL']) || LIBPQ.some((name) => env[name])
}

/** What was given, to be given again: ` --url postgres://app@localhost/x --schema billing`. A URL with a password was refused. */
export function flagsOf({ url, urlFile, schema, config }: Partial<ConnectionOptions>): string {
  const given = { '--url': url, '--url-file': urlFile, '--schema': schema, '--config': config }
  return Object.entries(given)
    .map(([name, value]) => (value === undefined ? '' : ` ${name} ${quoted(value)}`))
    .join('')
}

/** As a word of a shell. Undefined for what cannot be copied from a terminal. */
export function shellWord(text: string): string | undefined {
  return escape(text) === text ? quoted(text) : undefined
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** In an argument, a password would be seen by everybody who lists processes, and be kept in the shell's history. */
function checkArgument(url: string): string {
  if (hasPassword(url)) throw inArgument()
  return checkUrl(url, '--url')
}

function inArgument(): Exit {
  return misused(
    '--url has a password, which other users of this machine can see; it was not used',
    'leave it out, and give it in PGPASSWORD, or a file that PGPASSFILE names; or the whole URL in DATABASE_URL, in a file with --url-file <path>, or on stdin with --url-file -',
  )
}

/** Whoever sets it means its database, and the clients would go to another. */
function ofService(service: string): Exit {
  return misused(
    `PGSERVICE names the database (${escape(service)}), and the clients of Node.js do not read service files`,
    'set DATABASE_URL, or PGHOST, PGPORT, PGUSER and PGDATABASE, or give --url postgres://user@host:5432/name; or unset PGSERVICE',
  )
}

function checkUrl(url: string, where: string): string {
  const trimmed = url.trim()
  let protocol: string | undefined
  try {
    protocol = new URL(trimmed).protocol
  } catch {
    // Told below, without the text: it may have a password.
  }
  if (protocol === 'postgres:' || protocol === 'postgresql:') return trimmed
  throw misused(`${where} is not a URL of PostgreSQL`, 'it looks like this: postgres://user@host:5432/name')
}

async function readUrl(io: Io, file: string): Promise<string> {
  if (file === '-') return checkUrl(await readStream(io.stdin), 'what stdin has')
  const content = await readFile(path.resolve(io.cwd, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw failed(`--url-file ${file} cannot be read: ${error.code ?? error.message}`)
  })
  return checkUrl(content, `--url-file ${file}`)
}

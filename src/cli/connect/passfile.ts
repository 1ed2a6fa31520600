/** libpq's file of passwords: lines of host:port:database:user:password, `*` stands for anything. */
import { readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'

type Env = Readonly<Record<string, string | undefined>>

/** The password of the file, where neither the URL nor PGPASSWORD has one. */
export async function passwordFor(url: string | undefined, env: Env): Promise<string | undefined> {
  const given = url === undefined ? undefined : new URL(url)
  if (given?.password || given?.searchParams.get('password') || env['PGPASSWORD']) return undefined
  const file = env['PGPASSFILE'] ?? path.join(homedir(), '.pgpass')
  const user = decodeURIComponent(given?.username ?? '') || env['PGUSER'] || env['USER'] || ''
  const wanted = [
    given?.hostname || env['PGHOST'] || 'localhost',
    given?.port || env['PGPORT'] || '5432',
    decodeURIComponent(given?.pathname.slice(1) ?? '') || env['PGDATABASE'] || user,
    user,
  ]
  const lines = (await readSafely(file))?.split(/\r?\n/) ?? []
  for (const line of lines) {
    if (line.startsWith('#')) continue
    const fields = line.split(/(?<!\\):/).map((field) => field.replace(/\\(.)/g, '$1'))
    if (fields.length < 5) continue
    if (wanted.every((value, at) => fields[at] === '*' || fields[at] === value)) return fields[4]
  }
  return undefined
}

/** libpq does not take a file that others may read, and neither does this. */
async function readSafely(file: string): Promise<string | undefined> {
  try {
    const { mode } = await stat(file)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) return undefined
    return await readFile(file, 'utf8')
  } catch {
    return undefined
  }
}

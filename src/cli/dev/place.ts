/**
 * Where `oncebox dev` keeps what it has: in the project, where git does not look, and for root, whom PostgreSQL refuses to
 * run as, in a directory that the user it runs as can reach.
 */
import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { failed } from '../exit.js'

/** What a run of `oncebox dev` says to others, and to the next one. */
export interface State {
  /** Of the program that looks after the server. */
  readonly pid?: number
  readonly server?: number
  readonly port?: number
  readonly url?: string
  /** Where the data is. */
  readonly root?: string
}

export interface ServerUser {
  readonly uid?: number
  readonly gid?: number
}

/** The nearest directory with a package.json. */
export function projectOf(cwd: string): string {
  for (let directory = path.resolve(cwd); ; directory = path.dirname(directory)) {
    if (existsSync(path.join(directory, 'package.json'))) return directory
    if (path.dirname(directory) === directory) return path.resolve(cwd)
  }
}

function homeOf(project: string): string {
  const hasModules = existsSync(path.join(project, 'node_modules'))
  return path.join(project, hasModules ? 'node_modules/.cache/oncebox-dev' : '.oncebox')
}

export function readState(project: string): State {
  try {
    return JSON.parse(readFileSync(path.join(homeOf(project), 'state.json'), 'utf8')) as State
  } catch {
    return {}
  }
}

export function writeState(project: string, state: State): void {
  const home = homeOf(project)
  mkdirSync(home, { recursive: true })
  writeFileSync(path.join(home, '.gitignore'), '*\n')
  writeFileSync(path.join(home, 'state.json'), `${JSON.stringify(state, null, 2)}\n`)
}

export function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** PostgreSQL refuses to run as root; anyone else runs it as themselves. */
export function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return {}
  const passwd = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = passwd.find((line) => line.startsWith(`${name}:`))?.split(':') ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw failed('PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as', 'run oncebox dev as another user') // prettier-ignore
}

/** The directory of the data, which that user can reach and write. */
export function dataRoot(project: string, user: ServerUser): string {
  const wanted = path.join(homeOf(project), 'postgres')
  mkdirSync(homeOf(project), { recursive: true })
  mkdirSync(wanted, { recursive: true, mode: 0o700 })
  if (user.uid === undefined) return wanted
  chownSync(wanted, user.uid, user.gid!)
  if (canWrite(wanted, user)) return wanted
  const { root } = readState(project)
  if (root !== undefined && existsSync(root) && statSync(root).uid === user.uid) return root
  const elsewhere = mkdtempSync(path.join(tmpdir(), 'oncebox-dev-'))
  chownSync(elsewhere, user.uid, user.gid!)
  return elsewhere
}

function canWrite(directory: string, user: ServerUser): boolean {
  const { status } = spawnSync('/bin/sh', ['-c', 'cd "$1" && test -w .', 'sh', directory], { cwd: '/', ...user })
  return status === 0
}

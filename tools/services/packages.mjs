/**
 * Finds the programs of services, or gets them from Debian's packages: a test run needs real brokers, and never skips
 * for want of one.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, constants, readdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Of all services: whoever needs one first gets them all, in one installation. */
const PACKAGES = ['rabbitmq-server', 'nats-server', 'redis-server', 'librdkafka1', 'pgbouncer', 'prometheus']

/** Where programs are that an ordinary PATH does not name. */
const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** One installation at a time on the whole machine. */
const LOCK = '/var/lock/oncebox-services'

/**
 * The path of a program (or of a library, for instance), and whether it was there or had to be installed.
 *
 * @param {{ package: string, variable?: string, find: () => Promise<string | undefined> }} wanted without a variable:
 *   there is none to name a running one
 * @returns {Promise<{ path: string, kind: 'binary' | 'installed' }>}
 */
export async function findOrInstall({ package: name, variable, find }) {
  const found = await find()
  if (found) return { path: found, kind: 'binary' }

  const failure = await installPackages([name], PACKAGES)
  const installed = await find()
  if (installed) return { path: installed, kind: 'installed' }
  throw new Error(
    [
      `this needs ${name}, which was not found and could not be installed. Do one of:`,
      `  apt-get update && apt-get install --no-install-recommends ${name}`,
      ...(variable ? [`  docker compose up, and set ${variable} as compose.yaml says`] : []),
      ...(variable ? [`  set ${variable} to a running one`] : []),
      `  tried: ${failure ?? 'apt-get install, after which it was still not there'}`,
    ].join('\n'),
  )
}

/** The first of them in PATH or in one of the further directories that we may run. */
export async function findProgram(name, directories = []) {
  const searched = [...directories, ...(process.env.PATH ?? '').split(path.delimiter).filter(Boolean), ...DIRECTORIES]
  for (const directory of searched) {
    const file = path.join(directory, name)
    const isOurs = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isOurs) return file
  }
  return undefined
}

/**
 * Installs what is wanted, and with it what will be wanted next; if that cannot be had, what is wanted alone. Answers
 * why it failed, if it did.
 */
export async function installPackages(wanted, along = []) {
  if (process.getuid?.() !== 0) return 'not root, so nothing was installed'
  if (!existsSync('/usr/bin/apt-get')) return 'there is no apt-get'
  const all = [...new Set([...wanted, ...along])]
  const failure = await install(all)
  return failure !== undefined && all.length > wanted.length ? install(wanted) : failure
}

/**
 * What is there already is left alone, and no daemon is started: policy-rc.d is how Debian's packages are told, and is
 * removed again if it was not there.
 */
const INSTALL = `
missing=
for name in "$@"; do
  dpkg-query -W -f '\${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing="$missing $name"
done
[ -z "$missing" ] && exit 0
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod +x $policy
fi
[ -n "$UPDATE" ] && apt-get update -qq
apt-get install -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold --no-install-recommends $missing
`

async function install(packages) {
  const lists = await readdir('/var/lib/apt/lists').catch(() => [])
  const update = lists.some((file) => /_Packages(\.|$)/.test(file)) ? '' : 'yes'
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1', UPDATE: update }
  try {
    await run('flock', [LOCK, 'sh', '-c', INSTALL, 'install', ...packages], { env, timeout: 600_000 })
    return undefined
  } catch (error) {
    const text = error.stderr?.trim() || error.message
    return `apt-get install ${packages.join(' ')}: ${text.split('\n').at(-1)}`
  }
}

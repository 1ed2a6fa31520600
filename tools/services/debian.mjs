/**
 * Servers of another Debian than the one of the machine: `ONCEBOX_DEBIAN=trixie npx vitest run test/brokers/rabbitmq` takes
 * RabbitMQ, NATS, Redis and Valkey of that suite. Their packages are unpacked into a directory of the cache, once for all
 * runs of a user, and run with it as their root: nothing is installed. It needs to be root, on Debian.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { findOrInstall } from './packages.mjs'

const run = promisify(execFile)

const SUITE = process.env.ONCEBOX_DEBIAN
const SERVERS = ['rabbitmq-server', 'nats-server', 'redis-server', 'valkey-server']
/** What the scripts of RabbitMQ call. */
const TOOLS = ['bash', 'dash', 'coreutils', 'sed', 'grep', 'mawk', 'util-linux', 'hostname', 'libc-bin']

/**
 * A server's program: as `findOrInstall`, unless another Debian is asked for.
 *
 * @param {{ package: string, program: string, variable: string, find: () => Promise<string | undefined> }} wanted
 * @returns {Promise<{ path: string, kind: 'binary' | 'installed', version?: string }>}
 */
export async function findServer({ program, ...wanted }) {
  if (!SUITE) return findOrInstall(wanted)
  const directory = await unpacked()
  const { stdout } = await run('dpkg-deb', ['-f', await archiveOf(directory, wanted.package), 'Version'])
  return {
    path: await wrapped(directory, program),
    kind: 'installed',
    version: stdout.trim().replace(/^\d+:|-[^-]*$/g, ''),
  }
}

/** Only a complete directory has `root`, and one process at a time makes it. Arguments: directory, suite, packages. */
const UNPACK = `
directory=$1; suite=$2; shift 2
[ -e "$directory/root" ] && exit 0
mkdir -p "$directory/lists/partial" "$directory/archives/partial" "$directory/unpacking"
: > "$directory/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \\
  > "$directory/sources.list"
cat > "$directory/apt.conf" <<END
Dir::State::lists "$directory/lists";
Dir::State::status "$directory/status";
Dir::Cache::archives "$directory/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "$directory/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
APT::Sandbox::User "root";
END
export APT_CONFIG="$directory/apt.conf"
apt-get update -qq
apt-get install -qq -y --no-install-recommends --download-only "$@" > "$directory/log"
for archive in "$directory"/archives/*.deb; do dpkg-deb -x "$archive" "$directory/unpacking"; done
cp /etc/hosts "$directory/unpacking/etc/hosts"
ln -sf mawk "$directory/unpacking/usr/bin/awk"
mv "$directory/unpacking" "$directory/root"
`

async function unpacked() {
  if (process.getuid?.() !== 0) throw new Error('ONCEBOX_DEBIAN needs root: servers get a root directory of their own')
  const cache = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'oncebox')
  const directory = path.join(cache, `debian-${SUITE}`)
  if (existsSync(path.join(directory, 'root'))) return directory
  await mkdir(cache, { recursive: true })
  const args = [path.join(cache, 'lock'), 'sh', '-ec', UNPACK, 'unpack', directory, SUITE, ...SERVERS, ...TOOLS]
  await run('flock', args, { timeout: 600_000 })
  return directory
}

async function archiveOf(directory, name) {
  const { stdout } = await run('sh', ['-c', `ls "$0"/archives/"$1"_*`, directory, name])
  return stdout.trim()
}

/** Mounts are seen by the server alone, and gone with it. */
async function wrapped(directory, program) {
  const root = path.join(directory, 'root')
  await mkdir(path.join(directory, 'bin'), { recursive: true })
  await mkdir(path.join(root, tmpdir()), { recursive: true })
  const file = path.join(directory, 'bin', path.basename(program))
  const mounts = ['/dev', '/proc', tmpdir()].map((one) => `mount --rbind ${one} ${root}${one}`)
  const script = `${mounts.join(' && ')} && exec chroot ${root} /bin/sh -c 'cd "$0" 2>/dev/null; exec ${program} "$@"' "$PWD" "$@"`
  const quoted = script.replaceAll("'", `'\\''`)
  await writeFile(file, `#!/bin/sh\nexec unshare --mount sh -c '${quoted}' sh "$@"\n`, { mode: 0o755 })
  return file
}

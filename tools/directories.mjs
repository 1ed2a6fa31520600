/** Temporary directories of private servers, and what is in them. */
import { readFile, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Longer than any run. */
const ABANDONED_MS = 3_600_000

/** Runs that were killed with -9 leave their directory, named by the prefix and their id. */
export async function removeAbandonedDirectories(prefix) {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(prefix)) continue
    const owner = Number(name.slice(prefix.length).split('-')[0])
    const directory = path.join(tmpdir(), name)
    const age = await stat(directory).then(
      ({ ctimeMs }) => Date.now() - ctimeMs,
      () => 0,
    )
    if (age > ABANDONED_MS && !exists(owner)) await rm(directory, { recursive: true, force: true }).catch(() => {})
  }
}

function exists(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The end of a log. */
export async function tail(file) {
  const text = await readFile(file, 'utf8').catch(() => '(no log)')
  return text.split('\n').slice(-20).join('\n')
}

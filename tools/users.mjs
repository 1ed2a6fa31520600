/** Servers that refuse to run as root, and the user that they run as instead. Types are in users.d.mts. */
import { readFile } from 'node:fs/promises'

/** PostgreSQL and PgBouncer refuse to run as root; anyone else runs them as themselves. */
export async function serverUser() {
  if (process.getuid?.() !== 0) return {}
  const passwd = await readFile('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const entry = passwd.split('\n').find((line) => line.startsWith(`${name}:`))
    const [, , uid, gid] = entry?.split(':') ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL cannot run as root, and there is no user postgres or nobody to run it as')
}

/** The words of setpriv(1) that become that user. */
export function dropTo({ uid, gid } = {}) {
  return uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
}

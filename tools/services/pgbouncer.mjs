/**
 * A private PgBouncer in front of a server, on the loopback address alone: clients share its connections by the
 * transaction. It is no service of its own, so it exports no `start`. Types are in pgbouncer.d.mts.
 */
import { execFile } from 'node:child_process'
import { chown, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { serverUser } from '../users.mjs'
import { findOrInstall, findProgram } from './packages.mjs'
import { freePort } from './ports.mjs'
import { accepts, startProcess, startService } from './process.mjs'

const run = promisify(execFile)

export async function startPgBouncer(target, settings = {}) {
  const find = () => findProgram('pgbouncer')
  const { path: program, kind } = await findOrInstall({ package: 'pgbouncer', find })
  const { stdout } = await run(program, ['--version'])
  const [port, user] = [await freePort(), await serverUser()]
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(port)

  return startService({
    name: 'pgbouncer',
    variable: 'DATABASE_URL',
    kind,
    version: /PgBouncer ([\d.]+)/.exec(stdout)?.[1] ?? `of ${program}`,
    url: url.href,
    async prepare(directory) {
      const file = path.join(directory, 'pgbouncer.ini')
      await writeFile(file, configuration(new URL(target), { listen_port: port, ...settings }), { mode: 0o600 })
      if (user.uid === undefined) return
      await chown(directory, user.uid, user.gid)
      await chown(file, user.uid, user.gid)
    },
    launch: (directory) =>
      startProcess({ command: program, args: ['pgbouncer.ini'], user, directory, ready: () => accepts(port) }),
  })
}

/** Everybody is let in, as the user of the target's URL: what is tested is the pooling. */
function configuration({ hostname, port, username, password }, settings) {
  const server = { host: hostname, port: port || 5432, user: decodeURIComponent(username) }
  const login = password ? { ...server, password: decodeURIComponent(password) } : server
  const all = {
    listen_addr: '127.0.0.1',
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    // What the clients send at connection and PgBouncer does not track.
    ignore_startup_parameters: 'extra_float_digits',
    server_login_retry: 1,
    ...settings,
  }
  const lines = (entries) => Object.entries(entries).map(([key, value]) => `${key} = ${value}`)
  const target = Object.entries(login).map(([key, value]) => `${key}='${String(value).replaceAll("'", "''")}'`)
  return ['[databases]', `* = ${target.join(' ')}`, '[pgbouncer]', ...lines(all), ''].join('\n')
}

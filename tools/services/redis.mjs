/** A private Redis that loses nothing it has confirmed, on the loopback address alone. Types are in redis.d.mts. */
import { execFile } from 'node:child_process'
import { createConnection } from 'node:net'
import { promisify } from 'node:util'
import { findServer } from './debian.mjs'
import { findProgram } from './packages.mjs'
import { freePort } from './ports.mjs'
import { givenService, startProcess, startService } from './process.mjs'

const run = promisify(execFile)

export const name = 'redis'
export const variable = 'REDIS_URL'

export async function start() {
  const given = process.env[variable]
  if (given) return givenService({ name, variable, url: given, version: 'unknown' })

  // Valkey went on from Redis 7.2, and speaks its protocol.
  const server = process.env.ONCEBOX_REDIS === 'valkey' ? 'valkey-server' : 'redis-server'
  const find = () => findProgram(server)
  const { path: program, kind } = await findServer({ package: server, program: `/usr/bin/${server}`, variable, find })
  const { stdout } = await run(program, ['--version'])
  const port = await freePort()
  const settings = { port, bind: '127.0.0.1', save: '', appendonly: 'yes', appendfsync: 'always' }
  return startService({
    name,
    variable,
    kind,
    version: /v=([\d.]+)/.exec(stdout)?.[1] ?? `of ${program}`,
    url: `redis://127.0.0.1:${port}`,
    launch: (directory) =>
      startProcess({
        command: program,
        args: Object.entries({ ...settings, dir: directory }).flatMap(([key, value]) => [`--${key}`, String(value)]),
        directory,
        ready: () => pongs(port),
      }),
  })
}

/** It listens before it has read its data. */
function pongs(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1', () => socket.write('PING\r\n'))
    const settle = (answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', (reply) => settle(reply.toString().startsWith('+PONG'))).once('error', () => settle(false))
  })
}

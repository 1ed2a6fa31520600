/** A private NATS server with JetStream, on the loopback address alone. Types are in nats.d.mts. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { findServer } from './debian.mjs'
import { findProgram } from './packages.mjs'
import { freePort } from './ports.mjs'
import { accepts, givenService, startProcess, startService } from './process.mjs'

const run = promisify(execFile)

export const name = 'nats'
export const variable = 'NATS_URL'

export async function start() {
  const given = process.env[variable]
  if (given) return givenService({ name, variable, url: given, version: 'unknown' })

  const find = () => findProgram('nats-server')
  const wanted = { package: 'nats-server', program: '/usr/sbin/nats-server', variable, find }
  const { path: program, kind } = await findServer(wanted)
  const { stdout } = await run(program, ['--version'])
  const port = await freePort()
  return startService({
    name,
    variable,
    kind,
    version: /v([\d.]+)/.exec(stdout)?.[1] ?? `of ${program}`,
    url: `nats://127.0.0.1:${port}`,
    async prepare(directory) {
      const config = [
        `listen: 127.0.0.1:${port}`,
        // The default is 1 MB.
        'max_payload: 8MB',
        `jetstream { store_dir: ${JSON.stringify(path.join(directory, 'store'))} }`,
      ]
      await writeFile(path.join(directory, 'nats.conf'), config.join('\n'))
    },
    // It listens when its streams are there.
    launch: (directory) =>
      startProcess({ command: program, args: ['-c', 'nats.conf'], directory, ready: () => accepts(port) }),
  })
}

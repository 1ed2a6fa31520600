/**
 * A private SQS: fauxqs, which speaks its protocol, behind a process that passes connections on. Types are in sqs.d.mts.
 *
 * fauxqs keeps everything in memory, SQS loses nothing. So it is the process in front that is killed and started again:
 * requests break off, new ones are refused, and the messages are still there.
 */
import { mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from './ports.mjs'
import { accepts, givenService, startProcess, startService } from './process.mjs'

export const name = 'sqs'
export const variable = 'SQS_ENDPOINT'

export async function start() {
  const given = process.env[variable]
  if (given) return givenService({ name, variable, url: given, version: 'unknown' })

  const [port, innerPort] = await freePorts(2)
  let server
  return startService({
    name,
    variable,
    kind: 'npm',
    version: `fauxqs ${await fauxqsVersion()}`,
    url: `http://127.0.0.1:${port}`,
    async prepare(directory) {
      await mkdir(path.join(directory, 'server'))
      server = await startNode('server.mjs', [innerPort], path.join(directory, 'server'), innerPort)
    },
    launch: (directory) => startNode('front.mjs', [port, innerPort], directory, port),
    dispose: () => server?.end('SIGKILL'),
  })
}

function startNode(file, ports, directory, port) {
  const script = fileURLToPath(new URL(`sqs/${file}`, import.meta.url))
  return startProcess({
    command: process.execPath,
    args: [script, ...ports.map(String)],
    env: { NODE_OPTIONS: '' },
    directory,
    ready: () => accepts(port),
  })
}

async function fauxqsVersion() {
  const manifest = new URL('../package.json', import.meta.resolve('fauxqs'))
  return JSON.parse(await readFile(manifest, 'utf8')).version
}

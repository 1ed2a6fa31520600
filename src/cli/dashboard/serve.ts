/** Serves a dashboard over HTTP until it is told to stop. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Dashboard } from '../../dashboard/index.js'
import { toNodeListener } from '../../http/index.js'
import { failed, misused, type Exit } from '../exit.js'

export interface Served {
  /** As a browser takes it. */
  readonly url: string
  stop(): Promise<void>
}

export interface Place {
  readonly host: string
  readonly port: number
  readonly base: string
  /** The names that it answers under, with a port or without. Undefined: any. */
  readonly hosts: readonly string[] | undefined
}

export async function serve(ops: Dashboard, place: Place): Promise<Served> {
  const server = createServer(belowBase(place.base, toNodeListener(ops)))
  await listen(server, place)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${shown(place, port)}${place.base}/`,
    async stop() {
      await ops.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A proxy sends the path with the base, or takes it away, as nginx does where its `proxy_pass` ends with a slash. */
function belowBase(base: string, listener: ReturnType<typeof toNodeListener>): RequestListener {
  return (request, response) => {
    const { url = '/' } = request
    const isBelow = url === base || url.startsWith(`${base}/`) || url.startsWith(`${base}?`)
    if (url.startsWith('/') && !isBelow) request.url = base + url
    listener(request, response)
  }
}

function listen(server: Server, { host, port }: Place): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refused(error, host, port)))
    server.listen(port, host, resolve)
  })
}

function refused({ code, message }: NodeJS.ErrnoException, host: string, port: number): Exit {
  if (code === 'EADDRINUSE')
    return failed(`port ${port} of ${host} is taken`, 'choose another with --port; 0 takes any that is free')
  if (code === 'EACCES') return failed(`port ${port} may not be listened at`, 'choose one above 1023 with --port')
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL' || code === 'EINVAL')
    return misused(`--host: ${host} is no address of this machine`, 'for example: --host 127.0.0.1')
  return failed(`nothing can be served at ${host}, port ${port}: ${message}`)
}

/** An address of all interfaces is none that a browser can go to, and one that is not listed is refused. */
function shown({ host, hosts }: Place, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  const own = `${name}:${port}`
  if (hosts === undefined || hosts.includes(name) || hosts.includes(own)) return own
  const [first = name] = hosts
  return /:\d+$/.test(first) ? first : `${first}:${port}`
}

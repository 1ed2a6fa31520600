/** A TCP proxy that delays what the server says, and counts the trips of each connection since the last `reset`. */
import { connect, createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'

export interface SlowProxy {
  readonly url: string
  /** How often the client spoke after it had heard something. */
  trips(): number
  reset(): void
  close(): Promise<void>
}

export async function slowProxy(target: string, delayMs: number): Promise<SlowProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let count = 0
  let heard = true
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
    }
    client.on('data', (chunk) => {
      if (heard) count += 1
      heard = false
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      setTimeout(() => {
        heard = true
        client.write(chunk)
      }, delayMs)
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    trips: () => count,
    reset() {
      count = 0
      heard = true
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

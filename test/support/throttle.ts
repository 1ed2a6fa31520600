/** A TCP proxy over which so many bytes pass in a second, in each direction, as on a line to another continent. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Throttle {
  readonly url: string
  /** Bytes in a second from now on. Infinity: as fast as they come. */
  rate: number
  [Symbol.asyncDispose](): Promise<void>
}

export async function throttle(target: string): Promise<Throttle> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const pass = (from: Socket, to: Socket): void => {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    from.on('data', (chunk) => {
      to.write(chunk)
      if (throttled.rate === Infinity) return
      from.pause()
      setTimeout(() => from.resume(), (chunk.length / throttled.rate) * 1_000)
    })
  }
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    pass(client, upstream)
    pass(upstream, client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  const throttled: Throttle = {
    url: url.href,
    rate: Infinity,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return throttled
}

/** A TCP proxy in front of any server: a network that can be cut, or hold everything back. */
import { createConnection, createServer, type Socket } from 'node:net'

export interface Cable {
  /** The target's URL with the address of this end. */
  readonly url: string
  /** Ends every connection. What is on its way is lost; new connections work. */
  cut(): void
  /** Nothing passes in either direction, on the connections that exist. */
  hold(): void
  /** What comes from the server is late, on the connections that exist, until `flow`. */
  stall(): void
  flow(): void
  /** New connections lead to this server, as after a failover behind one address; those that exist stay. */
  pointAt(url: string): void
  /** So many bytes are held back on their way from the server. */
  readonly heldBytes: number
  [Symbol.asyncDispose](): Promise<void>
}

export async function layCable(targetUrl: string): Promise<Cable> {
  let target = new URL(targetUrl)
  const links = new Set<{ client: Socket; server: Socket; held: boolean; bytes: number }>()
  const listener = createServer((client) => {
    const server = createConnection(Number(target.port), target.hostname)
    const link = { client, server, held: false, bytes: 0 }
    links.add(link)
    const end = (): void => {
      links.delete(link)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (bytes) => void (link.held || server.write(bytes)))
    server.on('data', (bytes) => {
      if (link.held) link.bytes += bytes.length
      else client.write(bytes)
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const url = new URL(targetUrl)
  url.hostname = '127.0.0.1'
  url.port = String((listener.address() as { port: number }).port)
  const cut = (): void => {
    for (const { client, server } of [...links]) {
      client.destroy()
      server.destroy()
    }
  }
  return {
    url: url.href.replace(/\/$/, ''),
    cut,
    hold() {
      for (const link of links) link.held = true
    },
    stall() {
      for (const { server } of links) server.pause()
    },
    flow() {
      for (const { server } of links) server.resume()
    },
    pointAt: (next) => void (target = new URL(next)),
    get heldBytes() {
      return [...links].reduce((sum, { bytes }) => sum + bytes, 0)
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => listener.close(resolve))
      cut()
      await closed
    },
  }
}

/** `node front.mjs <port> <inner port>`: passes connections on, and takes them along when it is killed. */
import { connect, createServer } from 'node:net'

const [port, inner] = process.argv.slice(2).map(Number)

createServer((client) => {
  const server = connect(inner, '127.0.0.1')
  for (const [one, other] of [
    [client, server],
    [server, client],
  ]) {
    one.pipe(other)
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
  }
}).listen(port, '127.0.0.1')

/** A webhook on node:http in a process with little memory. Says what it uses when it is asked. */
import { createServer } from 'node:http'
import { toNodeListener, webhook } from 'oncebox/webhook'

const options = JSON.parse(process.argv[2])
const hook = webhook({ scheme: 'standard', ...options })
await hook.start(async (batch) => batch.map(({ id }) => ({ id, ack: true, status: 'stored', consumers: [] })))
const sockets = []
const server = createServer(toNodeListener(hook))
server.on('connection', (socket) => sockets.push(socket))
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port, bytes: usage() }))
process.on('message', () => {
  const received = sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  process.send({ received, bytes: usage() })
})
process.on('disconnect', () => process.exit(0))

/** The heap, and the buffers outside of it. */
function usage() {
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

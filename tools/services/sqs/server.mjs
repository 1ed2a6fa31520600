/**
 * `node server.mjs <port>`: fauxqs, on the loopback address.
 *
 * fauxqs hands messages to requests whose connection is gone. They are out of reach then until their time is over, and in
 * a FIFO queue their whole group with them: with connections that are cut over and over nothing would ever move.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { buildApp } from 'fauxqs'

const { SqsQueue } = await import(new URL('sqs/sqsStore.js', import.meta.resolve('fauxqs')))
const connection = new AsyncLocalStorage()
const { dequeue } = SqsQueue.prototype
SqsQueue.prototype.dequeue = function (...args) {
  return connection.getStore()?.destroyed ? [] : dequeue.apply(this, args)
}

const app = buildApp({ logger: false })
app.addHook('preHandler', ({ raw }, _, done) => connection.run(raw.socket, done))
await app.listen({ port: Number(process.argv[2]), host: '127.0.0.1' })

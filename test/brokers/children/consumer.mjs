/**
 * A process that consumes from a broker: each message leaves one row in `effect`, in the transaction of its handler.
 * `BROKER` holds the settings, see faults.ts. It is started by a command, so that a spare one can stand by.
 */
import net from 'node:net'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../../support/child.mjs'

const {
  adapter: file,
  settings,
  url,
  schema,
  mode,
  sourceOptions,
  maxBytes,
  handlerMs,
  options,
} = JSON.parse(process.env.BROKER)
const adapter = await import(file)
/** Every connection of the process, so that those to the broker can be cut. */
const sockets = new Set()
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  sockets.add(this)
  this.once('close', () => sockets.delete(this))
  return connect.apply(this, args)
}
const pool = new pg.Pool({ connectionString: url, max: 8, application_name: 'broker-consumer' })
pool.on('error', () => {})
const line = (_, message) => emit('line', { message })
const box = createBox({
  db: fromPg(pool),
  schema,
  maxBytes,
  hooks: { error: (error) => emit('trouble', { message: String(error?.message ?? error) }) },
  logger: { debug() {}, info() {}, warn: line, error: line },
})

const EFFECT = {
  name: 'effect',
  text: 'insert into effect (consumer, key, id, attempt, pid) values ($1, $2, $3, $4, $5)',
}
const handler = async ({ key, id, attempt }, { tx }) => {
  if (handlerMs) await new Promise((resolve) => setTimeout(resolve, handlerMs))
  await tx.query({ ...EFFECT, values: [mode, key ?? null, id, attempt, process.pid] })
}
box.consumer('effects', { 'order.placed': handler }, { mode, leaseMs: 1_000, ...options })
box.from(adapter.source(settings, sourceOptions))

process.on('message', ({ command: name }) => {
  if (name === 'cut') {
    const database = Number(new URL(url).port)
    for (const socket of sockets) if (socket.remotePort !== database) socket.destroy(new Error('cut'))
  }
  if (name !== 'usage') return
  const { user, system } = process.cpuUsage()
  emit('usage', { cpuMs: (user + system) / 1_000 })
})
emit('ready')
await command('start')
await box.start()
emit('started')

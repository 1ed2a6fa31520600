/** Runs handlers that do not wait for what they send and call, and reports what became of the process and of them. */
import pg from 'pg'
import { createBox, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../support/child.mjs'

const { DATABASE, MODE } = process.env
let unhandled = 0
process.on('unhandledRejection', () => unhandled++)
process.on('uncaughtException', () => unhandled++)

const pool = new pg.Pool({ connectionString: DATABASE, max: 4 })
const slow = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      new Promise((resolve) => setTimeout(resolve, 20, value.bad ? { issues: [{ message: 'bad' }] } : { value })),
  },
}
const box = createBox({
  db: fromPg(pool),
  messages: { order: unchecked(), mail: slow, quick: unchecked() },
  logger: { debug() {}, info() {}, warn() {}, error() {} },
})
const calls = []
let later
const handlers = {
  async both(_message, { effect }) {
    const a = effect('a', () => calls.push('a'))
    const b = effect('b', () => calls.push('b'))
    await a
    await b
  },
  async reversed(_message, { effect }) {
    const a = effect('a', () => calls.push('a'))
    const b = effect('b', () => calls.push('b'))
    await b
    await a
  },
  async all(_message, { effect }) {
    await Promise.all(['a', 'b', 'c'].map((name) => effect(name, () => calls.push(name))))
  },
  async wrapped(_message, { effect }) {
    const call = async (name) => {
      await effect(name, () => calls.push(name))
      return name
    }
    const a = call('a')
    const b = call('b')
    await a
    await b
  },
  async swallowed(_message, { effect }) {
    await effect('a', () => calls.push('a')).catch(() => undefined)
    await effect('b', () => calls.push('b'))
  },
  async twice(_message, { effect }) {
    await Promise.all(['a', 'a'].map((name, at) => effect(name, () => calls.push(name + at))))
  },
  async again(_message, { effect }) {
    await effect('a', () => calls.push('a1'))
    await effect('a', () => calls.push('a2'))
  },
  async quiet(_message, { effect }) {
    await Promise.allSettled(['a', 'a'].map((name, at) => effect(name, () => calls.push(name + at))))
  },
  async effect(_message, { effect }) {
    void effect('a', () => calls.push('a'))
  },
  async wrong(_message, { tx, effect }) {
    void effect('', () => calls.push('a'))
    await tx.query('select 1')
  },
  async send(_message, { send }) {
    void send('mail', {})
  },
  async bad(_message, { send }) {
    void send('mail', { bad: true })
    await new Promise((resolve) => setTimeout(resolve, 100))
  },
  async caught(_message, { send }) {
    await send('mail', { bad: true }).catch(() => undefined)
  },
  async throws(_message, { send, effect }) {
    void effect('a', () => calls.push('a'))
    void send('mail', { bad: true })
    throw new Error('of its own')
  },
  async each(_message, { tx }) {
    ;[1, 2].forEach(async (number) => {
      await tx.query('select pg_sleep(0.05)')
      await tx.query('select $1::int', [number])
    })
  },
  async blocked(_message, { tx }) {
    void tx.query('select pg_sleep(600)')
  },
  async late(_message, { tx, send, effect }) {
    later = new Promise((resolve) => setTimeout(resolve, 50)).then(() => {
      void tx.query('select 1')
      void send('quick', {})
      void effect('a', () => calls.push('a'))
    })
  },
}
const [, name, mode] = /^(\w+)\/(\w+)$/.exec(MODE)
box.consumer(
  'a',
  { order: handlers[name] },
  { mode, retry: { attempts: 1 }, ...(name === 'blocked' && { timeoutMs: 500 }) },
)
await box.migrate()
const message = { id: '1', type: 'order', data: {} }
if (mode === 'stored') await box.receive(message)
else await box.handle(message)
await box.drain()
await later
// Rejections that nobody handles are told after the microtasks of the turn in which they happened.
await new Promise((resolve) => setTimeout(resolve, 200))
const [{ state, error }] = await box.admin.message({ id: '1' })
const { rows } = await pool.query('select count(*)::int sent from oncebox.outbox')
emit('report', {
  unhandled,
  calls,
  state,
  code: error?.code ?? null,
  cause: error?.cause?.code ?? null,
  sent: rows[0].sent,
})
await command('stop')
await box.stop()
await pool.end()
process.exit(0)

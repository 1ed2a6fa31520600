/**
 * A bank's process: `balance` moves money and `receipt` confirms it, in no order; `history` writes it down, in order per
 * account. Handlers fail, ask for time and refuse now and then. `BANK` holds the settings, see bank.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createBox, Reject, RetryLater } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { emit } from '../../support/child.mjs'

const { url, consumers, seed } = JSON.parse(process.env.BANK)
const pool = new pg.Pool({ connectionString: url, max: 8, application_name: 'bank', connectionTimeoutMillis: 5_000 })
const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const box = createBox({ db: fromPg(pool), logger: quiet })

let state = seed >>> 0
/** A small generator of random numbers (mulberry32): the same seed, the same numbers. */
function random() {
  state = (state + 0x6d2b79f5) >>> 0
  let t = state
  t = Math.imul(t ^ (t >>> 15), t | 1)
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

async function misbehave() {
  const dice = random()
  if (dice < 0.01) throw new Error('bad luck')
  if (dice < 0.015) throw new RetryLater({ afterMs: 50 })
  if (dice < 0.017) throw new Reject('refused')
  if (dice < 0.03) await sleep(10 * random())
}

/** The event loop stands still, perhaps beyond the lease: what comes next is sent before any timer runs. */
function stall() {
  if (random() < 0.005) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000 * random())
}

async function enter(consumer, { id, attempt, data: { from, to, amount, seq } }, tx) {
  await tx.query({
    name: 'enter',
    text: 'insert into entry (consumer, id, source, target, amount, seq, attempt) values ($1, $2, $3, $4, $5, $6, $7)',
    values: [consumer, id, from, to, amount, seq, attempt],
  })
}

const move = { name: 'move', text: 'update account set balance = balance + $2 where id = $1' }
const HANDLERS = {
  balance: async (message, { tx }) => {
    const { from, to, amount } = message.data
    await tx.query({ ...move, values: [from, -amount] })
    await misbehave()
    await tx.query({ ...move, values: [to, amount] })
    await enter('balance', message, tx)
    await misbehave()
  },
  history: async (message, { tx }) => {
    await enter('history', message, tx)
    await misbehave()
    stall()
  },
  receipt: async (message, { tx }) => {
    await enter('receipt', message, tx)
    await misbehave()
    stall()
  },
}
for (const { name, options } of consumers) box.consumer(name, { transfer: HANDLERS[name] }, options)

async function deliver({ door, messages, n }) {
  try {
    const outcomes = await box[door](messages)
    emit(`delivered:${n}`, { acks: outcomes.map(({ ack }) => ack) })
  } catch (error) {
    emit(`delivered:${n}`, { rejected: error.message })
  }
}
process.on('message', (message) => {
  if (message.command === 'deliver') void deliver(message)
})
process.on('SIGTERM', () => {
  box.stop({ timeoutMs: 20_000 }).then(
    () => pool.end().then(() => process.exit(0)),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
})

// The database may be out of reach at this very moment.
for (;;) {
  try {
    await box.start()
    break
  } catch (error) {
    emit('trouble', { message: error.message })
    await sleep(50)
  }
}
emit('started')

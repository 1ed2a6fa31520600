/**
 * A process that runs consumers. Each message leaves one row in `effect`, written in the transaction of its handler, and
 * its data says what else the handler does: see `act`. `ARENA` holds the settings, see arena.ts.
 */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { batch, createBox, Reject, RetryLater } from 'oncebox'
import { command, emit } from '../../support/child.mjs'

const settings = JSON.parse(process.env.ARENA)
const { name, url, schema, consumers, pool: poolOptions, start, report, ignores } = settings
const { name: clientName, from } = settings.client ?? { name: 'pg' }
const { open } = await import(`../../clients/subjects/${clientName}.mjs`)
const { hostname, port, username, pathname } = new URL(url)
const place = { host: hostname, port: Number(port), user: username, database: pathname.slice(1) }
const client = await open({ ...place, max: 8, name, ...poolOptions }, from)
const box = createBox({
  db: client.driver,
  schema,
  hooks: {
    dead: ({ message, consumer, error }) => emit('dead', { id: message.id, consumer, code: error?.code }),
    error: (error) => emit('trouble', { message: error.message }),
  },
})

async function leaveEffect(consumer, { key, id, attempt, data }, tx) {
  await client.insert(tx, { consumer, key: key ?? null, id, seq: data.seq ?? null, attempt, pid: process.pid })
}

/** Blocks the event loop until there is such a file: what follows runs before any timer. */
function blockUntil(file) {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!existsSync(file)) Atomics.wait(cell, 0, 0, 10)
}

const seen = new Set()

/** What the data of a message asks for, in this order. `first` is what happens only the first time in this process. */
async function act({ id, attempt, data: always }, { tx, signal, effect }) {
  const data = seen.has(id) ? { ...always } : { ...always, ...always.first }
  seen.add(id)
  for (const field of ignores ?? []) delete data[field]
  if (report) emit('run', { id, attempt })
  if (data.effect) await effect(data.effect, () => process.pid)
  if (data.sql) await client.native(tx, data.sql)
  if (data.hold) {
    signal.addEventListener('abort', () => emit('aborted', { id, code: signal.reason?.code }))
    emit('holding', { id })
    await command(`go:${id}`)
  }
  if (data.blockUntil) {
    emit('holding', { id })
    blockUntil(data.blockUntil)
  }
  if (data.sleepMs) await sleep(data.sleepMs)
  if (data.failTimes >= attempt) throw new Error(`failure ${attempt}`)
  if (data.later) throw new RetryLater({ afterMs: data.later })
  if (data.reject) throw new Reject('refused')
  if (data.die === 'exit') process.exit(7)
  if (data.die === 'kill') process.kill(process.pid, 'SIGKILL')
}

/** The effect is there before the rest happens, unless it is to come `late`: either way it must not outlive a failure. */
const handlerOf = (consumer) => async (message, ctx) => {
  if (!message.data.late) await leaveEffect(consumer, message, ctx.tx)
  await act(message, ctx)
  if (message.data.late) await leaveEffect(consumer, message, ctx.tx)
  return message.data.result
}
const batchOf = (consumer) =>
  batch(async (messages, ctx) => {
    for (const message of messages) await handlerOf(consumer)(message, ctx)
  })

for (const { name: consumer, types = [consumer], batched, options } of consumers) {
  const handler = batched ? batchOf(consumer) : handlerOf(consumer)
  box.consumer(consumer, Object.fromEntries(types.map((type) => [type, handler])), options)
}

process.on('SIGTERM', () => {
  box.stop().then(
    async () => {
      emit('stopped')
      await client.close()
      process.exit(0)
    },
    (error) => {
      emit('trouble', { message: `stop failed: ${error.stack}` })
      process.exit(1)
    },
  )
})

/** The front doors, for tests that deliver from several processes: one call for each list of messages, all at once. */
async function deliver({ door, calls, n }) {
  const call = async (messages) => {
    try {
      const outcomes = await box[door](messages)
      return outcomes.map(({ id, status, ack, reason }) => ({ id, status, ack, reason }))
    } catch (error) {
      return { rejected: error.message, code: error.code }
    }
  }
  emit(`delivered:${n}`, { answers: await Promise.all(calls.map(call)) })
}
process.on('message', (message) => {
  if (message.command === 'deliver') void deliver(message)
})

if (start !== false) await box.start()
emit('started')

/** Bodies under attack, before any signature is checked: in tiny pieces, slow, and many at once. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { toNodeListener, webhook } from 'oncebox/webhook'
import { createIntake, flowOfStream, type Flow } from '../../src/http/body.js'
import { waitUntil } from '../support/wait.js'
import { attached, bodyOf, SECRETS, serve, sign } from './senders.js'

const MIB = 1_048_576
/** `ONCEBOX_ATTACK=200` is the long form: so many connections at once, each with a mebibyte in pieces of a byte. */
const CONNECTIONS = Number(process.env['ONCEBOX_ATTACK'] ?? 20)

/** A request that has begun: its head is sent, its body is not. */
async function begin(port: number): Promise<{ socket: Socket; answer(): string }> {
  const { headers } = await sign('standard', bodyOf('standard'))
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (piece) => (answer += String(piece)))
  socket.on('error', () => undefined)
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${head.join('')}transfer-encoding: chunked\r\n\r\n`)
  return { socket, answer: () => answer }
}

/** So many pieces of a byte each. */
async function trickle(socket: Socket, count: number): Promise<void> {
  const piece = '1\r\nx\r\n'
  for (let sent = 0; sent < count && !socket.destroyed; sent += 10_000) {
    if (!socket.write(piece.repeat(Math.min(10_000, count - sent)))) {
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined)
    }
  }
}

interface Report {
  readonly port: number
  readonly received: number
  readonly bytes: number
}

async function ask(child: ChildProcess): Promise<Report> {
  const answered = once(child, 'message')
  child.send('memory')
  return ((await answered) as [Report])[0]
}

function start(options: object): ChildProcess {
  const file = fileURLToPath(new URL('./intake-child.mjs', import.meta.url))
  const given = JSON.stringify({ secret: SECRETS.standard, ...options })
  return fork(file, [given], { execArgv: ['--expose-gc', '--max-old-space-size=64'], stdio: 'inherit' })
}

test('a body of a mebibyte in pieces of a byte takes a few mebibytes', { timeout: 300_000 }, async () => {
  const child = start({ bodyTimeoutMs: 240_000 })
  try {
    const [{ port, bytes: before }] = (await once(child, 'message')) as [Report]
    const { socket } = await begin(port)
    await trickle(socket, MIB - 1)
    const { bytes } = await waitUntil(
      async () => {
        const report = await ask(child)
        return report.received === socket.bytesWritten && report
      },
      { timeoutMs: 240_000, everyMs: 500, what: 'the whole body' },
    )
    expect((bytes - before) / MIB).toBeLessThan(8)
    socket.destroy()
  } finally {
    child.kill('SIGKILL')
  }
})

test(
  'many such bodies at once stay within their bound, and honest senders are answered',
  { timeout: 900_000 },
  async () => {
    const child = start({ bodyTimeoutMs: 600_000, maxBufferedBytes: 8 * MIB })
    const attackers: Socket[] = []
    try {
      const [{ port, bytes: before }] = (await once(child, 'message')) as [Report]
      const size = CONNECTIONS > 20 ? MIB - 1 : 50_000
      const sending: Promise<void>[] = []
      for (let count = 0; count < CONNECTIONS; count++) {
        const { socket } = await begin(port)
        attackers.push(socket)
        sending.push(trickle(socket, size))
      }
      let most = 0
      for (let honest = 0; honest < 5; honest++) {
        const sent = await sign('standard', bodyOf('standard', `honest-${honest}`))
        const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', ...sent })
        expect(response.status).toBe(200)
        most = Math.max(most, (await ask(child)).bytes)
      }
      await Promise.all(sending)
      most = Math.max(most, (await ask(child)).bytes)
      // Beside the buffers, what the sockets of 200 connections and their parsers hold.
      expect((most - before) / MIB).toBeLessThan(8 + 24)
    } finally {
      for (const socket of attackers) socket.destroy()
      child.kill('SIGKILL')
    }
  },
)

test('a body that does not come in time is answered 408, and delivers nothing', async () => {
  const { hook, got } = attached({ scheme: 'standard', bodyTimeoutMs: 50 })
  await using http = await serve(toNodeListener(hook))
  const { socket, answer } = await begin(http.port)
  await trickle(socket, 3)
  await waitUntil(() => answer().startsWith('HTTP/1.1 408 '), { what: 'the answer' })
  // And then it is cut off, though it would go on.
  await waitUntil(() => socket.destroyed || socket.readableEnded, { what: 'the end' })
  expect(got).toEqual([])
})

test('bodies that hold all the room give way to the next one: the largest of the oldest first', async () => {
  const { hook, got } = attached({ scheme: 'standard', maxBytes: 65_536, maxBufferedBytes: 131_072 })
  await using http = await serve(toNodeListener(hook))
  const attackers = await Promise.all(Array.from({ length: 8 }, () => begin(http.port)))
  for (const { socket } of attackers) socket.write(`${(40_000).toString(16)}\r\n${'x'.repeat(40_000)}\r\n`)
  const isRefused = (one: (typeof attackers)[number]): boolean => one.answer().startsWith('HTTP/1.1 503 ')
  // Three times 40 000 bytes, and room to grow, are more than there is.
  await waitUntil(() => attackers.filter(isRefused).length >= 5, { what: 'the first ones to go' })
  for (let honest = 0; honest < 20; honest++) {
    const sent = await sign('standard', bodyOf('standard', `honest-${honest}`, { text: 'x'.repeat(10_000) }))
    expect((await fetch(http.url, { method: 'POST', ...sent })).status).toBe(200)
  }
  expect(got).toHaveLength(20)
  const refused = attackers.find(isRefused)!
  expect(refused.answer()).toMatch(/retry-after: 5/i)
  for (const { socket } of attackers) socket.destroy()
})

test('nothing stays reserved for bodies that ended, broke off, were too large, too slow or crowded out', async () => {
  const intake = createIntake({ maxBytes: 4_096, bodyTimeoutMs: 20, maxBufferedBytes: 8_192 })
  const stops: string[] = []
  const flow =
    (name: string, run: (to: Parameters<Flow>[0]) => void): Flow =>
    (to) => {
      run(to)
      return () => void stops.push(name)
    }
  const some = Buffer.alloc(1_000, 'x')
  const ended = intake.read(
    flow('ended', ({ take, end }) => {
      take(some)
      take(some)
      end()
      end()
      take(some)
    }),
  )
  expect(await ended).toEqual({ bytes: Buffer.alloc(2_000, 'x') })
  const broken = flow('broken', ({ take, broken }) => {
    take(some)
    broken()
  })
  expect(await intake.read(broken)).toEqual({ problem: 'broken' })
  const large = flow('large', ({ take }) => {
    for (let at = 0; at < 5; at++) take(some)
  })
  expect(await intake.read(large)).toEqual({ problem: 'too-large' })
  expect(await intake.read(flow('slow', ({ take }) => take(some)))).toEqual({ problem: 'too-slow' })
  const throwing: Flow = () => {
    throw new Error('no flow')
  }
  expect(await intake.read(throwing)).toEqual({ problem: 'broken' })
  const many = await Promise.all(
    Array.from({ length: 20 }, () => intake.read(flow('many', ({ take }) => take(Buffer.alloc(1_500))))),
  )
  expect(many.filter((read) => 'problem' in read && read.problem === 'crowded-out').length).toBeGreaterThan(10)
  expect(intake.bufferedBytes).toBe(0)
  // Each was told to stop, once.
  expect(stops.length).toBe(4 + 20)
})

test('a stream is read into one buffer, and cancelled where it is too large', async () => {
  let cancelled = false
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(Buffer.from('xy')),
    cancel: () => void (cancelled = true),
  })
  expect(await createIntake({ maxBytes: 9 }).read(flowOfStream(stream))).toEqual({ problem: 'too-large' })
  await waitUntil(() => cancelled)
  const texts = new Blob(['a', 'b']).stream()
  expect(await createIntake({ maxBytes: 9 }).read(flowOfStream(texts))).toEqual({ bytes: Buffer.from('ab') })
})

test.for<[string, object]>([
  ['no time at all', { bodyTimeoutMs: 0 }],
  ['no room for one body', { maxBytes: 1_000, maxBufferedBytes: 1_999 }],
  ['words', { maxBufferedBytes: 'much' }],
])('%s is refused', ([, options]) => {
  expect(() => webhook({ scheme: 'standard', secret: SECRETS.standard, ...options })).toThrow(/must be a whole number/)
})

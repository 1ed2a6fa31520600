/** Streams that break off, clients that go away, and what others have said of the response before. */
import type { RequestListener } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2, type ClientHttp2Session } from 'node:http2'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { toKoa, toNodeListener, type FetchHandler } from 'oncebox/http'
import { createIntake, flowOf, type Read } from '../../src/http/body.js'
import { gate } from '../inbox/fixture.js'
import { installed } from '../support/installed.js'
import { waitUntil } from '../support/wait.js'
import { serve } from '../webhook/senders.js'

const breaking = (parts: readonly string[], until: Promise<unknown>): Response =>
  new Response(
    new ReadableStream({
      async start(controller) {
        for (const part of parts) controller.enqueue(Buffer.from(part))
        await until
        controller.error(new Error('broken'))
      },
    }),
  )
const tick = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const BROKEN = 'the request broke off'
const text = (read: Read): string => ('bytes' in read ? Buffer.from(read.bytes).toString() : BROKEN)

interface Frames {
  readonly socket: Socket
  /** Somebody reads the body. */
  readonly began: Promise<void>
}

/** By hand: clients end a stream before they cancel it. */
function frame(type: number, flags: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  // Settings are of the connection.
  head.writeUInt32BE(type === 4 ? 0 : 1, 5)
  return Buffer.concat([head, payload])
}

/** A header, neither packed nor kept in a table. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])
}

async function overHttp2(
  handler: FetchHandler,
  run: (client: ClientHttp2Session, port: number) => Promise<void>,
): Promise<unknown[]> {
  const errors: unknown[] = []
  const listener = toNodeListener(handler, { onError: (error) => errors.push(error) })
  const server = createHttp2(listener as never)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = connectHttp2(`http://127.0.0.1:${port}`)
  try {
    await run(client, port)
  } finally {
    client.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return errors
}

test.for([0, 1, 20])('a stream that breaks off before its first piece, after %i ms, is answered 500', async (ms) => {
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  await using http = await serve(toNodeListener(() => breaking([], tick(ms)), { onError }))
  const response = await fetch(http.url)
  expect([response.status, await response.text()]).toEqual([500, '{"error":"internal error"}'])
  expect(errors).toMatchObject([{ message: 'broken' }])
})

test.for([
  ['events, at once', 'text/event-stream', ['late']],
  ['events, several together', 'text/event-stream', ['late', 'and', 'later']],
  ['others, after a while', 'application/x-ndjson', ['late']],
] as const)('where the first piece is long in coming the head is sent, and no piece is lost: %s', async (given) => {
  const [, type, pieces] = given
  const first = gate()
  const body = new ReadableStream({
    async start(controller) {
      await first.opened
      for (const piece of pieces) controller.enqueue(Buffer.from(piece))
      controller.close()
    },
  })
  await using http = await serve(toNodeListener(() => new Response(body, { headers: { 'content-type': type } })))
  const response = await fetch(http.url)
  first.open()
  expect([response.status, await response.text()]).toEqual([200, pieces.join('')])
})

test('over HTTP/1.0 a stream that breaks off ends with a reset: its end would be the end of the body', async () => {
  const read = gate()
  await using http = await serve(toNodeListener(() => breaking(['a part'], read.opened), { onError: () => undefined }))
  const socket = connect(http.port, '127.0.0.1')
  const ends: string[] = []
  socket.on('end', () => ends.push('end')).on('error', (error: NodeJS.ErrnoException) => ends.push(error.code!))
  socket.on('data', (data) => String(data).endsWith('a part') && read.open())
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write('GET / HTTP/1.0\r\n\r\n')
  await closed
  expect(ends).toEqual(['ECONNRESET'])
})

describe('over HTTP/2', () => {
  test('a stream that breaks off ends with an error, and others of its connection go on', async () => {
    const read = gate()
    const handler = (request: Request): Response =>
      request.url.endsWith('/whole') ? new Response('whole') : breaking(['a part'], read.opened)
    const errors = await overHttp2(handler, async (client) => {
      const stream = client.request({ ':path': '/' })
      stream.on('data', () => read.open())
      const error = new Promise<Error>((resolve) => stream.once('error', resolve))
      await new Promise((resolve) => stream.once('close', resolve))
      expect(stream.rstCode).toBe(2)
      expect(await error).toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
      let text = ''
      for await (const chunk of client.request({ ':path': '/whole' })) text += String(chunk)
      expect(text).toBe('whole')
    })
    expect(errors).toMatchObject([{ message: 'broken' }])
  })

  test('a client that goes away aborts its signal, every time, and cancels its stream', async () => {
    const signals: AbortSignal[] = []
    let cancelled = 0
    const handler = (request: Request): Response => {
      signals.push(request.signal)
      const start = (controller: ReadableStreamDefaultController): void => controller.enqueue(Buffer.from('x'))
      return new Response(new ReadableStream({ start, cancel: () => void cancelled++ }))
    }
    const errors = await overHttp2(handler, async (client) => {
      for (let n = 0; n < 20; n++) {
        const stream = client.request({ ':path': '/' })
        await new Promise((resolve) => stream.once('data', resolve))
        stream.close(8)
      }
      await waitUntil(() => cancelled === 20 && signals.every(({ aborted }) => aborted))
    })
    expect([signals.length, errors]).toEqual([20, []])
  })

  describe.for([
    ['read as a whole', async (request: Request) => text(await createIntake({ maxBytes: 100 }).read(flowOf(request)))],
    ['read by its stream', (request: Request) => request.text()],
  ] as const)('a body, %s,', ([, read]) => {
    async function bodiesOf(cut: (frames: Frames) => void | Promise<void>, more = {}): Promise<string[]> {
      const bodies: string[] = []
      const began = gate()
      const handler = async (request: Request): Promise<Response> => {
        const body = read(request)
        began.open()
        bodies.push(await body.catch((error: Error) => error.message))
        return new Response('ok')
      }
      await overHttp2(handler, async (_, port) => {
        const socket = connect(port, '127.0.0.1').on('error', () => undefined)
        socket.resume()
        socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0)]))
        const head = { ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'x', ...more }
        socket.write(frame(1, 4, Buffer.concat(Object.entries(head).map(([name, value]) => literal(name, value)))))
        await cut({ socket, began: began.opened })
        await waitUntil(() => bodies.length === 1)
        socket.destroy()
      })
      return bodies
    }
    const part = frame(0, 0, Buffer.from('a part'))
    const reset = (code: number): Buffer => frame(3, 0, Buffer.from([0, 0, 0, code]))

    test.for([0, 2, 8])('that its client resets with code %i does not pass for whole', async (code) => {
      expect(await bodiesOf(({ socket }) => void socket.write(Buffer.concat([part, reset(code)])))).toEqual([BROKEN])
    })

    test.for([0, 2, 8])('that its client resets later with code %i does not pass for whole', async (code) => {
      const cut = async ({ socket, began }: Frames): Promise<void> => {
        socket.write(part)
        await began
        socket.write(reset(code))
      }
      expect(await bodiesOf(cut)).toEqual([BROKEN])
    })

    test('that its client ends short of its Content-Length does not pass for whole', async () => {
      const ended = frame(0, 1, Buffer.from('a part'))
      const write = ({ socket }: Frames): void => void socket.write(ended)
      expect(await bodiesOf(write, { 'content-length': '20' })).toEqual([BROKEN])
    })

    test('that its client ends is whole', async () => {
      const whole = frame(0, 1, Buffer.from('all of it'))
      expect(await bodiesOf(({ socket }) => void socket.write(whole))).toEqual(['all of it'])
    })
  })

  test('one that was answered aborts nothing', async () => {
    const signals: AbortSignal[] = []
    await overHttp2(
      (request) => (signals.push(request.signal), new Response('ok')),
      async (client) => {
        for (let n = 0; n < 5; n++) {
          const stream = client.request({ ':path': '/' })
          stream.resume()
          await new Promise((resolve) => stream.once('close', resolve))
        }
      },
    )
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false, false])
  })
})

describe('what was said of another body and another status is not said of this one', () => {
  const answer = (request: Request): Response => {
    if (request.method === 'PUT') throw new Error('broken')
    return Response.json({ answer: 42 }, { status: 201 })
  }
  const onError = (): void => undefined

  async function onKoa(): Promise<RequestListener> {
    interface Koa {
      use(
        one: (context: { body: unknown; set(name: string, value: string): void }, next: () => unknown) => unknown,
      ): void
      callback(): RequestListener
    }
    const others = await installed('koa', ['koa@3.1.1', 'koa-mount@4.2.0'])
    const app = new (others.require('koa') as new () => Koa)()
    app.use((context, next) => {
      context.body = 'default'
      context.set('ETag', '"default"')
      context.set('X-Kept', 'yes')
      return next()
    })
    app.use(toKoa(answer, { onError }) as never)
    return app.callback()
  }
  const onNode = async (): Promise<RequestListener> => {
    const listener = toNodeListener(answer, { onError })
    return (request, response) => {
      response.statusMessage = 'OK'
      response.setHeader('content-length', '7').setHeader('etag', '"default"').setHeader('x-kept', 'yes')
      listener(request, response)
    }
  }

  test.for([
    ['Koa', onKoa],
    ['node:http', onNode],
  ] as const)('%s', async ([, open]) => {
    await using http = await serve(await open())
    for (let n = 0; n < 2; n++) {
      const response = await fetch(http.url)
      expect([response.status, response.statusText, await response.text()]).toEqual([201, 'Created', '{"answer":42}'])
      const { headers } = response
      expect(['content-type', 'content-length', 'etag', 'x-kept'].map((name) => headers.get(name))).toEqual([
        'application/json',
        '13',
        null,
        'yes',
      ])
    }
    const failed = await fetch(http.url, { method: 'PUT' })
    expect([failed.status, failed.statusText]).toEqual([500, 'Internal Server Error'])
  })
})

/** The bridge: streams, slow and vanished clients, heads, and handlers that fail, over real connections. */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { mountOf, toFastify, toKoa, toNodeListener, type FetchHandler, type MountOptions } from 'oncebox/http'
import { gate } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { serve } from '../webhook/senders.js'

const at = (handler: FetchHandler, options?: MountOptions) => serve(toNodeListener(handler, options))
const CHUNK = 64 * 1_024

/** Opens a request whose answer is not read by itself. */
async function open(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, (response) => {
      response.on('error', () => undefined)
      resolve(response)
    })
    request.on('error', reject)
    request.end()
  })
}

test('a function and an object with fetch are mounted alike', async () => {
  const handler = {
    greeting: 'hello',
    async fetch(request: Request) {
      return new Response(`${this.greeting} ${await request.text()}`, { status: 201, headers: { 'x-a': 'b' } })
    },
  }
  for (const one of [handler, (request: Request) => handler.fetch(request)]) {
    await using http = await at(one)
    const response = await fetch(http.url, { method: 'POST', body: 'world' })
    expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([201, 'b', 'hello world'])
    // All of it was there at once.
    expect(response.headers.get('content-length')).toBe('11')
  }
})

test('what is no handler is refused where it is mounted', () => {
  for (const mount of [toNodeListener, toFastify, toKoa]) {
    expect(() => mount({} as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(() => mount(() => new Response(), { base: 'admin/' })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  }
})

test('several cookies are several headers', async () => {
  await using http = await at(() => {
    const response = new Response('ok')
    response.headers.append('set-cookie', 'a=1; Path=/')
    response.headers.append('set-cookie', 'b=2')
    return response
  })
  expect((await fetch(http.url)).headers.getSetCookie()).toEqual(['a=1; Path=/', 'b=2'])
})

describe('what a middleware has set before', () => {
  const behind = (handler: FetchHandler) => {
    const listener = toNodeListener(handler, { onError: () => undefined })
    return serve((request, response) => {
      response.setHeader('vary', 'Origin').setHeader('set-cookie', 'session=1').setHeader('x-request-id', '7')
      response.setHeader('etag', '"of another body"')
      listener(request, response)
    })
  }

  test('is joined by what the handler says it varies by, and by its cookies', async () => {
    await using http = await behind(() => {
      const headers = { vary: 'accept, origin', 'set-cookie': 'a=1', 'x-request-id': '8' }
      return new Response('ok', { headers })
    })
    const { headers } = await fetch(http.url)
    expect(headers.get('vary')).toBe('Origin, accept')
    expect(headers.getSetCookie()).toEqual(['session=1', 'a=1'])
    expect(headers.get('x-request-id')).toBe('8')
  })

  test.for<[how: string, handler: FetchHandler]>([
    ['throws', () => Promise.reject(new Error('broken'))],
    [
      'breaks off before its first piece',
      () => {
        const body = new ReadableStream({ pull: (controller) => controller.error(new Error('broken')) })
        return new Response(body, { headers: { vary: 'accept', 'set-cookie': 'a=1', 'cache-control': 'public' } })
      },
    ],
  ])('is there too where the handler %s, and nothing that the handler has set', async ([, handler]) => {
    await using http = await behind(handler)
    const { status, headers } = await fetch(http.url)
    expect([status, headers.get('content-type')]).toEqual([500, 'application/json'])
    expect([headers.get('vary'), headers.get('x-request-id'), headers.getSetCookie()]).toEqual([
      'Origin',
      '7',
      ['session=1'],
    ])
    expect([headers.get('etag'), headers.get('cache-control')]).toEqual([null, null])
  })
})

test('events reach the client one by one, the head before the first', async () => {
  const gates = [gate(), gate(), gate()]
  await using http = await at(() => {
    let sent = 0
    const body = new ReadableStream({
      async pull(controller) {
        const next = gates[sent]
        if (!next) return controller.close()
        await next.opened
        controller.enqueue(Buffer.from(`data: ${sent++}\n\n`))
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  })
  const response = await fetch(http.url)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const reader = response.body!.getReader()
  for (const [n, one] of gates.entries()) {
    one.open()
    expect(Buffer.from((await reader.read()).value).toString()).toBe(`data: ${n}\n\n`)
  }
  expect((await reader.read()).done).toBe(true)
})

test('a stream is asked for no more than a slow client takes', async () => {
  let pulled = 0
  await using http = await at(
    () =>
      new Response(
        new ReadableStream(
          {
            pull(controller) {
              pulled += 1
              controller.enqueue(new Uint8Array(CHUNK))
            },
          },
          { highWaterMark: 0 },
        ),
      ),
  )
  const response = await open(http.url)
  // The buffers between the two ends fill up, and then nothing moves.
  let before = -1
  await waitUntil(() => {
    const still = before === pulled && pulled > 0
    before = pulled
    return still
  }, { everyMs: 200 }) // prettier-ignore
  expect(pulled).toBeLessThan(1_000)
  const stopped = pulled
  response.resume()
  await waitUntil(() => pulled > stopped + 100, { what: 'the stream to go on' })
  response.destroy()
})

describe('a client that goes away', () => {
  test('aborts the signal of its request, and cancels the stream', async () => {
    let signal: AbortSignal | undefined
    const cancelled = gate<unknown>()
    await using http = await at((request) => {
      signal = request.signal
      return new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(Buffer.from('data: 1\n\n')),
          cancel: (reason) => cancelled.open(reason),
        }),
      )
    })
    const response = await open(http.url)
    expect(signal!.aborted).toBe(false)
    response.destroy()
    expect(await cancelled.opened).toMatchObject({ message: 'the client is gone' })
    await waitUntil(() => signal!.aborted)
  })

  test('while the handler works, too', async () => {
    const running = gate<AbortSignal>()
    await using http = await at(async (request) => {
      running.open(request.signal)
      await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
      return new Response('nobody reads this')
    })
    const request = httpRequest(http.url, { method: 'POST' })
    request.on('error', () => undefined)
    request.end('body')
    const signal = await running.opened
    request.destroy()
    await waitUntil(() => signal.aborted)
  })

  test('one that was answered aborts nothing', async () => {
    let signal: AbortSignal | undefined
    await using http = await at((request) => {
      signal = request.signal
      return new Response('ok')
    })
    const response = await fetch(http.url, { headers: { connection: 'close' } })
    expect(await response.text()).toBe('ok')
    expect((await fetch(http.url, { headers: { connection: 'close' } })).status).toBe(200)
    expect(signal!.aborted).toBe(false)
  })
})

describe('a handler that fails', () => {
  test.for<[what: string, handler: FetchHandler]>([
    ['throws', () => { throw new Error('hunter2') }], // prettier-ignore
    ['rejects', () => Promise.reject(new Error('hunter2'))],
    ['answers no Response', () => undefined as never],
    ['answers with a stream that breaks at once', () => new Response(new ReadableStream({ pull: (c) => c.error(new Error('hunter2')) }))], // prettier-ignore
  ])('and %s is answered 500, with nothing of the inside', async ([, handler]) => {
    const errors: unknown[] = []
    await using http = await at(handler, { onError: (error) => errors.push(error) })
    const response = await fetch(http.url)
    expect([response.status, await response.text()]).toEqual([500, '{"error":"internal error"}'])
    expect(errors).toHaveLength(1)
  })

  test('in the middle of a stream ends the connection, so that a part does not pass for the whole', async () => {
    const errors: unknown[] = []
    const read = gate()
    const handler = () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(Buffer.from('a part')),
          async pull(controller) {
            await read.opened
            controller.error(new Error('broken'))
          },
        }, { highWaterMark: 2 }),
      ) // prettier-ignore
    await using http = await at(handler, { onError: (error) => errors.push(error) })
    const response = await fetch(http.url)
    const reader = response.body!.getReader()
    expect(Buffer.from((await reader.read()).value).toString()).toBe('a part')
    read.open()
    await expect(reader.read()).rejects.toThrow()
    expect(errors).toMatchObject([{ message: 'broken' }])
  })

  test('warns the process by default, without details', async () => {
    const warned = gate<Error>()
    process.once('warning', (warning) => warned.open(warning))
    await using http = await at(() => Promise.reject(new Error('hunter2')))
    expect((await fetch(http.url)).status).toBe(500)
    expect(await warned.opened).toMatchObject({ code: 'ONCEBOX_HTTP', message: expect.not.stringContaining('hunter2') })
  })
})

test('a body that somebody has taken meanwhile is an error to whoever reads it, and not endless', async () => {
  const later: IncomingMessage[] = []
  const bridge = toNodeListener(async (request) => {
    later[0]!.resume()
    await new Promise((resolve) => later[0]!.once('end', resolve))
    return new Response(await request.text().catch((error: Error) => error.name))
  })
  await using http = await serve((request, response) => {
    later.push(request)
    bridge(request, response)
  })
  expect(await (await fetch(http.url, { method: 'POST', body: 'a' })).text()).toBe('TypeError')
})

test('HEAD gets the head alone, and the stream is cancelled', async () => {
  const cancelled = gate()
  await using http = await at(
    () => new Response(new ReadableStream({ cancel: () => cancelled.open() }), { headers: { 'x-a': 'b' } }),
  )
  const response = await fetch(http.url, { method: 'HEAD' })
  expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([200, 'b', ''])
  await cancelled.opened
})

test('HTTP/2 is served too', async () => {
  const server = createHttp2(toNodeListener(async (request) => {
    const headers = { connection: 'close', 'x-path': new URL(request.url).pathname }
    return new Response(`got ${await request.text()}`, { headers })
  }) as never) // prettier-ignore
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  try {
    const stream = client.request({ ':method': 'POST', ':path': '/a' })
    const head = new Promise<object>((resolve) => stream.once('response', resolve))
    stream.end('it')
    let text = ''
    for await (const chunk of stream) text += String(chunk)
    expect(await head).toMatchObject({ ':status': 200, 'x-path': '/a' })
    expect(text).toBe('got it')
  } finally {
    client.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
})

test('a request that came another way is mounted nowhere', () => {
  expect(mountOf(new Request('http://x/'))).toEqual({ base: '', request: undefined })
})

test('a server can be closed right after its last answer', async () => {
  const server = createServer(toNodeListener(() => new Response('ok')))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).text()).toBe('ok')
  await new Promise((resolve) => server.close(resolve))
})

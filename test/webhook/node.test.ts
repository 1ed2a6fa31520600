/** node:http: requests as they come over the wire, good and bad. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { toNodeListener } from 'oncebox/webhook'
import { waitUntil } from '../support/wait.js'
import { attached, bodyOf, serve, sign, type Sent } from './senders.js'

/** Sends these bytes, and answers what comes back until the other side closes or the answer has arrived. */
async function raw(port: number, head: readonly string[], body = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`${head.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

function lines({ headers }: Sent): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
}

test('a signed request over the wire is delivered, with a length or in chunks', async () => {
  const { hook, got } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard', '', { text: 'ü'.repeat(100_000) }))
  expect((await fetch(http.url, { method: 'POST', ...sent })).status).toBe(200)
  const chunks = new Blob([sent.body]).stream()
  const chunked = await fetch(http.url, { method: 'POST', headers: sent.headers, body: chunks, duplex: 'half' })
  expect(chunked.status).toBe(200)
  expect(got.map(({ body }) => Buffer.from(body!).toString())).toEqual([sent.body, sent.body])
})

test('a body without end, in chunks, is answered 413 and then cut off', async () => {
  const { hook, got } = attached({ scheme: 'standard', maxBytes: 100_000 })
  await using http = await serve(toNodeListener(hook))
  const { headers } = await sign('standard', bodyOf('standard'))
  const request = httpRequest(http.url, { method: 'POST', headers })
  let closed = false
  request.on('error', () => undefined)
  request.on('close', () => (closed = true))
  const pump = (): void => {
    while (!closed && request.write(Buffer.alloc(65_536)));
  }
  request.on('drain', pump)
  const answered = new Promise<IncomingMessage>((resolve) => request.once('response', resolve))
  pump()
  expect((await answered).statusCode).toBe(413)
  await waitUntil(() => closed, { what: 'the connection to be closed' })
  expect(got).toEqual([])
})

test('a body that says it is too large is answered before it is sent', async () => {
  const { hook } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const request = httpRequest(http.url, { method: 'POST', headers: { ...sent.headers, 'content-length': 100_000_000 } })
  request.on('error', () => undefined)
  const answered = new Promise<IncomingMessage>((resolve) => request.once('response', resolve))
  request.flushHeaders()
  expect((await answered).statusCode).toBe(413)
  request.destroy()
})

test('a request that breaks off delivers nothing, and the next one is served', async () => {
  const { hook, got } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const socket = connect(http.port, '127.0.0.1')
  socket.on('error', () => undefined)
  const head = ['POST / HTTP/1.1', 'host: x', ...lines(sent), `content-length: ${sent.body.length + 10}`]
  await new Promise<void>((resolve) => socket.write(`${head.join('\r\n')}\r\n\r\n${sent.body}`, () => resolve()))
  socket.destroy()
  expect((await fetch(http.url, { method: 'POST', ...sent })).status).toBe(200)
  expect(got).toHaveLength(1)
})

test('headers that come twice over the wire are refused', async () => {
  const { hook } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const head = ['POST / HTTP/1.1', 'host: x', ...lines(sent), `content-length: ${sent.body.length}`]
  expect(await raw(http.port, head, sent.body)).toMatch(/^HTTP\/1\.1 200 /)
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    const again = `${name.toUpperCase()}: ${sent.headers[name]}`
    expect(await raw(http.port, [...head, again], sent.body)).toMatch(/^HTTP\/1\.1 400 /)
  }
})

test('other methods are answered 405 over the wire', async () => {
  const { hook } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  for (const method of ['GET', 'HEAD', 'PUT', 'TRACE']) {
    expect(await raw(http.port, [`${method} / HTTP/1.1`, 'host: x'])).toMatch(/^HTTP\/1\.1 405 (.*\r\n)*allow: POST/)
  }
})

test('a refused request leaves its connection fit for the next', async () => {
  const { hook } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const socket = connect(http.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => (answer += String(chunk)))
  const unsigned = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${sent.body.length}\r\n\r\n${sent.body}`
  const signed = `POST / HTTP/1.1\r\nhost: x\r\n${lines(sent).join('\r\n')}\r\ncontent-length: ${sent.body.length}\r\n\r\n${sent.body}`
  socket.write(unsigned + signed)
  await waitUntil(() => answer.split('HTTP/1.1 ').length === 3)
  expect(answer).toMatch(/^HTTP\/1\.1 401 [^]*HTTP\/1\.1 200 /)
  socket.destroy()
})

test.for([
  ['parsed', (bytes: Buffer): object => ({ body: JSON.parse(bytes.toString()) as unknown }), 500],
  ['kept as bytes, by express.raw()', (bytes: Buffer): object => ({ body: bytes }), 200],
  ['kept as bytes beside, by a cloud function', (bytes: Buffer): object => ({ body: {}, rawBody: bytes }), 200],
] as const)('a body that was read before, and %s', async ([, keep, status]) => {
  const errors: unknown[] = []
  const { hook, got } = attached({ scheme: 'standard', onError: (error) => errors.push(error) })
  const listener = toNodeListener(hook)
  await using http = await serve((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => listener(Object.assign(request, keep(Buffer.concat(chunks))), response))
  })
  const sent = await sign('standard', bodyOf('standard'))
  expect((await fetch(http.url, { method: 'POST', ...sent })).status).toBe(status)
  expect([got.length, errors.length]).toEqual(status === 200 ? [1, 0] : [0, 1])
})

test.for([
  ['HTTP/1.0', 'POST / HTTP/1.0', [], 200],
  ['an absolute address', 'POST http://elsewhere.example/x HTTP/1.1', [], 200],
  ['an address that is none', 'POST //[::x?%ff HTTP/1.1', [], 200],
  ['an address with a fragment', 'POST //[::x?#%ff HTTP/1.1', [], 400],
  ['an expectation', 'POST / HTTP/1.1', ['expect: 100-continue'], 200],
  ['more headers than Node takes', 'POST / HTTP/1.1', [`a: ${'x'.repeat(20_000)}`], 431],
  ['a thousand headers', 'POST / HTTP/1.1', Array.from({ length: 1_000 }, (_, n) => `a${n}: b`), 200],
  ['two lengths', 'POST / HTTP/1.1', ['content-length: 1'], 400],
  ['a length and chunks', 'POST / HTTP/1.1', ['transfer-encoding: chunked'], 400],
] as const)('a request with %s is answered', async ([, first, more, status]) => {
  const { hook } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const head = [first, 'host: x', ...lines(sent), `content-length: ${Buffer.byteLength(sent.body)}`, ...more]
  const answers = (await raw(http.port, head, sent.body)).split(/(?=HTTP\/1\.1 )/)
  expect(answers.at(-1)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
})

test('a sender that goes away at any moment leaves nothing behind, and the next one is served', async () => {
  const warnings: Error[] = []
  const warn = (warning: Error): number => warnings.push(warning)
  process.on('warning', warn)
  const { hook } = attached({ scheme: 'standard' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const head = ['POST / HTTP/1.1', 'host: x', ...lines(sent), `content-length: ${Buffer.byteLength(sent.body)}`]
  const bytes = `${head.join('\r\n')}\r\n\r\n${sent.body}`
  for (let length = 0; length <= bytes.length; length += 17) {
    const socket = connect(http.port, '127.0.0.1')
    socket.on('error', () => undefined)
    await new Promise<void>((resolve) => socket.write(bytes.slice(0, length), () => resolve()))
    socket.destroy()
  }
  // On one connection, one behind the other: none waits for an answer.
  const socket = connect(http.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => (answer += String(chunk)))
  socket.write(bytes.repeat(30))
  await waitUntil(() => answer.split('HTTP/1.1 200 ').length === 31, { what: 'thirty answers' })
  socket.destroy()
  process.off('warning', warn)
  expect(warnings).toEqual([])
})

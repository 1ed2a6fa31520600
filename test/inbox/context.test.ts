/** What a handler is given besides its message and its transaction. */
import { describe, expect, test } from 'vitest'
import { note, recorder, useServer } from './fixture.js'

const server = useServer('context', { max: 20 })

describe('what a handler is given', () => {
  test('send: in the same transaction, with correlation, causation and trace context; read back by sent()', async () => {
    await using box = await server.open({ source: 'me' })
    box.consumer('a', {
      async note(message, { send }) {
        const { id } = await send('first', { n: 1 }, { key: 'k', subject: 's', headers: { mine: 'x' } })
        expect(id).toMatch(/^[0-9a-f-]{36}$/)
        await send('second', { n: 2 }, { id: `${message.id}-second` })
        await send('second', { n: 2 }, { id: `${message.id}-second` })
      },
    })
    const headers = { traceparent: '00-a', tracestate: 't', baggage: 'b', correlationid: 'root', private: 'no' }
    await box.receive(note('1', { headers }))
    await box.drain()
    const trace = { traceparent: '00-a', tracestate: 't', baggage: 'b', correlationid: 'root', causationid: '1' }
    expect(await box.sent()).toMatchObject([
      { type: 'first', source: 'me', data: { n: 1 }, key: 'k', subject: 's', headers: { ...trace, mine: 'x' } },
      { type: 'second', source: 'me', id: '1-second', data: { n: 2 }, correlationId: 'root', causationId: '1' },
    ])
    expect((await box.sent())[0]!.headers).not.toHaveProperty('private')
    expect(await box.sent()).toHaveLength(2)
  })

  test('a message that starts a conversation is its own correlation', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (_message, { send }) => send('next', {}) })
    await box.receive(note('1'))
    await box.drain()
    const [sent] = await box.sent()
    expect(sent).toMatchObject({ correlationId: '1', causationId: '1' })
    expect(sent!.id).not.toBe('1')
  })

  test('log: bound to the message', async () => {
    const logger = recorder()
    await using box = await server.open({ logger })
    box.consumer('a', { note: (_message, { log }) => log.info({ more: 1 }, 'hello') })
    await box.handle(note('1', { headers: { correlationid: 'c' } }))
    expect(logger.lines.filter(({ level }) => level === 'info')).toEqual([
      {
        level: 'info',
        about: { id: '1', type: 'note', consumer: 'a', attempt: 1, correlationId: 'c', more: 1 },
        text: 'hello',
      },
    ])
  })
})

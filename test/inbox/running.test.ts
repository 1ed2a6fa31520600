/** `start({ consumers })`: a process that runs some consumers of a box still stores for the others. */
import { expect, test } from 'vitest'
import type { Deliver } from 'oncebox'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('running')

/** A source whose deliveries the test makes. */
function byHand(box: Bench): { deliver: Deliver } {
  const hand: { deliver: Deliver } = { deliver: () => Promise.reject(new Error('not started')) }
  box.from({
    start: async (deliver) => void (hand.deliver = deliver),
    stop: async () => undefined,
  })
  return hand
}

test('what arrives for consumers that are not run here is stored for them, whatever their mode', async () => {
  await using box = await server.open()
  const hand = byHand(box)
  const ran: string[] = []
  const handlers = (name: string) => ({ note: () => void ran.push(name) })
  box.consumer('stored', handlers('stored'))
  box.consumer('inline', handlers('inline'), { mode: 'inline' })
  box.consumer('direct', handlers('direct'), { mode: 'direct' })
  box.consumer('chosen', handlers('chosen'), { mode: 'inline' })
  await box.start({ consumers: ['chosen'] })
  await waitUntil(() => hand.deliver([note('n1')]).then(() => true, () => false)) // prettier-ignore
  await box.receive(note('n2'))
  await waitUntil(async () => (await box.fates('n2')).some((fate) => fate.consumer === 'chosen' && fate.state === 'handled')) // prettier-ignore

  for (const id of ['n1', 'n2']) {
    const states = (await box.fates(id)).map(({ consumer, state }) => [consumer, state])
    expect(states, id).toEqual([['chosen', 'handled'], ['direct', 'pending'], ['inline', 'pending'], ['stored', 'pending']]) // prettier-ignore
  }
  expect(new Set(ran)).toEqual(new Set(['chosen']))

  await box.stop()
  await box.start()
  const handled = async (): Promise<boolean> =>
    (await Promise.all([box.fates('n1'), box.fates('n2')])).flat().every(({ state }) => state === 'handled')
  await waitUntil(handled, { what: 'a start without names to run them all' })
  expect(ran).toHaveLength(8)
})

test('a consumer that is declared later runs only if it was named, and a second start changes nothing', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.start({ consumers: ['a'] })
  await box.start()
  box.consumer('later', { note: () => undefined })
  await waitUntil(async () => (await box.sql('select from ob.subscription')).length === 2)
  await box.receive(note('n1'))
  await waitUntil(async () => (await box.fates('n1')).some(({ state }) => state === 'handled'))
  expect((await box.fates('n1')).map(({ state }) => state)).toEqual(['handled', 'pending'])
})

test('messages that wait for a consumer of another process do not make this one unhealthy', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  box.consumer('b', { note: () => undefined })
  await box.start({ consumers: ['a'] })
  await box.receive(note('n1'))
  await box.clock.advance(120_000)
  await waitUntil(async () => (await box.fates('n1'))[0]!.state === 'handled')
  expect(await box.health()).toMatchObject({ ok: true })
})

test('the pool is weighed against the consumers that run', async () => {
  const log = recorder()
  await using box = await server.open({ logger: log })
  box.consumer('a', { note: () => undefined }, { concurrency: 4 })
  box.consumer('b', { note: () => undefined }, { concurrency: 50 })
  await box.start({ consumers: ['a'] })
  expect(log.lines.filter(({ text }) => text?.includes('pool'))).toEqual([])
})

test.each([
  [['snd-mail'], 'did you mean send-mail?'],
  [['what'], 'send-mail'],
  ['send-mail', 'a list of names'],
])('start refuses the consumers %j', async (consumers, words) => {
  await using box = await server.open()
  box.consumer('send-mail', { note: () => undefined })
  const refusal = { code: 'OPTION_INVALID', message: expect.stringContaining(words) }
  await expect(box.start({ consumers: consumers as string[] })).rejects.toMatchObject(refusal)
})

test('a box that is started refuses to be started with other consumers, and with what is misspelt', async () => {
  await using box = await server.open()
  box.consumer('a', { note() {} })
  box.consumer('b', { note() {} })
  const refused = (options: object) => expect(box.start(options)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  const starting = box.start({ consumers: ['a'] })
  await refused({ consumers: ['b'] })
  await starting
  for (const consumers of [['b'], ['a', 'b'], []]) await refused({ consumers })
  await refused({ consumer: ['a'] })
  await box.start({ consumers: ['a'] })
  await box.start()
  await box.stop()
  await box.start()
  await refused({ consumers: ['a'] })
  await box.start({ consumers: ['b', 'a'] })
  await box.stop()
})

test('a process is named as one that runs a consumer only where it does', async () => {
  await using box = await server.open()
  box.consumer('a', { note() {} })
  box.consumer('b', { note() {} })
  await box.start({ consumers: ['a'] })
  const running = async () => (await box.admin.consumers()).map(({ name, processes }) => [name, processes.length])
  expect(await running()).toEqual([['a', 1], ['b', 0]]) // prettier-ignore
  await box.stop()
  await box.start()
  expect(await running()).toEqual([['a', 1], ['b', 1]]) // prettier-ignore
  await box.stop()
})

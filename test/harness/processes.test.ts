import { expect, test } from 'vitest'
import { spawnChild, waitUntil } from '../support/processes.js'

const ECHO = new URL('./echo-child.mjs', import.meta.url)

test('a child reports events, takes commands, and loses no event by dying at once', async () => {
  const child = spawnChild(ECHO, { args: ['a'], env: { GREETING: 'hello' } })
  expect(await child.next('ready')).toEqual({ event: 'ready', args: ['a'], greeting: 'hello' })

  child.send('echo', { text: 'one' })
  child.send('echo', { text: 'two' })
  expect(await child.next('echo')).toMatchObject({ text: 'one' })
  expect(await child.next('echo')).toMatchObject({ text: 'two' })

  child.send('echo', { text: 'die' })
  await child.next('dying')
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' })
  expect(child.output).toContain('not an event')
})

test('waiting for an event of a child that is killed rejects', async () => {
  const child = spawnChild(ECHO)
  await child.next('ready')
  const echo = child.next('echo')
  await Promise.all([expect(echo).rejects.toThrow(`before it reported 'echo'`), child.kill('SIGKILL')])
})

test('a stopped child answers after it continues', async () => {
  const child = spawnChild(ECHO)
  await child.next('ready')
  await child.kill('SIGSTOP')
  child.send('echo', { text: 'late' })
  await expect(child.next('echo', { timeoutMs: 100 })).rejects.toThrow('ran for 100 ms')
  await child.kill('SIGCONT')
  expect(await child.next('echo')).toMatchObject({ text: 'late' })
})

test('a condition that stays false is an error that says what was waited for', async () => {
  await expect(waitUntil(() => false, { timeoutMs: 30, what: 'the moon to rise' })).rejects.toThrow('the moon to rise')
  let asked = 0
  expect(await waitUntil(() => (++asked === 3 ? 'up' : undefined))).toBe('up')
})

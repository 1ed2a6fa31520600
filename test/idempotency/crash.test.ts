/** Processes that are killed, and several that get one key at once: each key has one effect, and one response. */
import { expect, test } from 'vitest'
import { useServer, type Bench } from '../inbox/fixture.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'

const server = useServer('idempotency_crash')

interface Running {
  readonly pid: number
  readonly child: Child
  post(key: string | undefined): Promise<{ status: number; by: number; replayed: string | null }>
}

async function start(box: Bench, dies = ''): Promise<Running> {
  const env = { DATABASE_URL: server.url, SCHEMA: box.schema, DIE: dies }
  const child = spawnChild(new URL('./children/server.mjs', import.meta.url), { env })
  const { port } = await child.next('listening')
  return {
    pid: child.pid,
    child,
    async post(key) {
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
      const init = { method: 'POST', headers, body: '{}' }
      const response = await fetch(`http://127.0.0.1:${String(port)}/`, init)
      const { by } = (await response.json()) as { by: number }
      return { status: response.status, by, replayed: response.headers.get('idempotent-replayed') }
    },
  }
}

test('a process that dies between the commit and the answer has answered: the next one replays it', async () => {
  await using box = await server.open()
  const dying = await start(box, 'after')
  await expect(dying.post('k')).rejects.toThrow()
  expect(await box.ids()).toEqual(['k'])
  const next = await start(box)
  expect(await next.post('k')).toEqual({ status: 200, by: dying.pid, replayed: 'true' })
  expect(await box.ids()).toEqual(['k'])
})

test('a process that dies in its handler leaves nothing, and the next one runs', async () => {
  await using box = await server.open()
  const dying = await start(box, 'before')
  await expect(dying.post('k')).rejects.toThrow()
  const next = await start(box)
  expect(await next.post('k')).toEqual({ status: 200, by: next.pid, replayed: null })
  expect(await box.ids()).toEqual(['k'])
})

test('ten keys, ten times each, over two processes at once: ten effects, and one response for each key', async () => {
  await using box = await server.open()
  const both = await Promise.all([start(box), start(box)])
  const keys = Array.from({ length: 10 }, (_, n) => `k${n}`)
  const sends = keys.flatMap((key) => Array.from({ length: 10 }, (_, n) => ({ key, to: both[n % 2]! })))
  const answers = await Promise.all(sends.map(async ({ key, to }) => ({ key, ...(await to.post(key)) })))
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(10)
  for (const key of keys) expect(new Set(answers.filter((one) => one.key === key).map(({ by }) => by)).size).toBe(1)
  expect((await box.ids()).sort()).toEqual(keys)
})

test.for(['k', undefined])('a process that freezes in its handler, with the key %s, is not waited for', async (key) => {
  await using box = await server.open()
  const frozen = await start(box, 'never')
  const first = frozen.post(key)
  first.catch(() => undefined)
  await frozen.child.next('holding')
  await frozen.child.kill('SIGSTOP')
  const held = `select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`
  expect((await server.pool.query(held)).rowCount).toBe(1)
  if (key === undefined) await waitUntil(async () => (await server.pool.query(held)).rowCount === 0)
  const next = await start(box)
  expect(await next.post(key)).toMatchObject({ status: 200, by: next.pid, replayed: null })
  await frozen.child.kill('SIGCONT')
  expect(await first).toMatchObject({ status: 503 })
  expect(await box.ids()).toEqual([key ?? 'none'])
})

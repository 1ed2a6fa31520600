/** What leaves through hooks.error and the log names no value of a message, whatever the database says. */
import { inspect } from 'node:util'
import type { Deliver, Logger } from 'oncebox'
import { expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, useServer } from './fixture.js'

const server = useServer('canary')
const CANARY = 'c4n4ry'

function ears() {
  const lines: string[] = []
  const write = (about: object, text?: string): void => void lines.push(inspect([about, text], SHOW))
  const logger: Logger = { debug: write, info: write, warn: write, error: write }
  return { lines, logger }
}
const SHOW = { depth: 10, showHidden: true } as const

test('a row that the database refuses is not shown to hooks.error', async () => {
  const { lines, logger } = ears()
  const errors: Error[] = []
  await using box = await server.open({ logger, hooks: { error: (error) => void errors.push(error) } })
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  await box.sql(`alter table ob.message add constraint refused check (type <> 'note') not valid`)
  let deliver: Deliver | undefined
  box.from({ push: true, start: async (given) => void (deliver = given), stop: async () => {} }, { types: 'any' })
  await waitUntil(() => deliver !== undefined)
  await expect(deliver!([note('1', { data: { secret: CANARY } })])).rejects.toMatchObject({ code: '23514' })
  expect(errors).toMatchObject([{ code: '23514' }])
  expect(inspect(errors, SHOW)).not.toContain(CANARY)
  expect(lines.join()).not.toContain(CANARY)
})

test.each([
  ['a key that is there already', `insert into ob.test_ledger (n, note) values (1, '${CANARY}'), (1, '${CANARY}')`],
  ['a value that is no number', `select '${CANARY}'::int`],
  ['a value that is no JSON', `select '{"x": ${CANARY}'::json`],
  ['a value that is too long', `select '${CANARY}'::varchar(2)::int`],
  ['a time that is none', `select '${CANARY}'::timestamptz`],
])('the log does not quote %s', async (_, statement) => {
  const { lines, logger } = ears()
  await using box = await server.open({ logger })
  box.consumer(
    'a',
    { note: (_message, { tx }) => tx.query(statement.replaceAll('ob.', `${box.schema}.`)) as never },
    {
      retry: { attempts: 1 },
    },
  )
  await box.receive(note('1', { data: { secret: CANARY } }))
  await box.drain()
  expect(await box.fate('1')).toMatchObject({ state: 'dead' })
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.join()).not.toContain(CANARY)
})

test('a hook that fails is told of without values of rows', async () => {
  const { lines, logger } = ears()
  const failed = () => server.pool.query('select $1::int', [CANARY]) as never
  await using box = await server.open({ logger, hooks: { dead: failed } })
  box.consumer('a', { note: () => Promise.reject(new Error('no')) }, { retry: { attempts: 1 } })
  await box.receive(note('1'))
  await box.drain()
  await waitUntil(() => lines.some((line) => line.includes('a hook failed')))
  expect(lines.join()).toContain('invalid input syntax for type integer')
  expect(lines.join()).not.toContain(CANARY)
})

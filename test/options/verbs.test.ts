/** What a call takes besides its first arguments is refused where it is misspelt or ill-typed: a slip changes nothing. */
import { unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { brokerConformance, crashAt, createTestBox, driverConformance, type TestBox } from 'oncebox/testing'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'

let database: ScratchDatabase
let pool: pg.Pool
let box: TestBox<Record<string, never>, unknown>
beforeAll(async () => {
  database = await scratchDatabase('options_of_verbs')
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
  box = (await createTestBox({ db: fromPg(pool), messages: { note: unchecked() } })) as never
  box.consumer('mail', { '*': () => undefined })
})
afterAll(async () => {
  await box[Symbol.asyncDispose]()
  await pool.end()
  await database.close()
})

type Given = Record<string, unknown>
const call =
  (verb: keyof typeof box.admin, ...before: unknown[]) =>
  (given: unknown): Promise<unknown> =>
    (box.admin[verb] as (...given: unknown[]) => Promise<unknown>)(...before, given)
const charge = { consumer: 'mail', id: '1', effect: 'charge' }
const event = { type: 'note', data: 1 }

/** Each call that takes options, with those that it cannot do without. */
const CALLS = {
  send: async (given: unknown) => pool.connect().then((tx) => box.send(tx, 'note' as never, 1, given as never).finally(() => tx.release())), // prettier-ignore
  sendMany: async (given: unknown) => pool.connect().then((tx) => box.sendMany(tx, [{ ...event, ...(given as Given) }] as never).finally(() => tx.release())), // prettier-ignore
  messages: call('messages', {}),
  message: async (given: unknown) => call('message')({ id: '1', ...(given as Given) }),
  retry: call('retry', { state: 'dead' }),
  discard: async (given: unknown) => call('discard', { state: 'dead' })({ reason: 'a test', ...(given as Given) }),
  pause: call('pause', 'mail'),
  resume: call('resume', 'mail'),
  answer: call('answer', charge, { happened: false }),
  'answer, what is told': async (given: unknown) => call('answer', charge)({ happened: true, ...(given as Given) }),
  'answer, where': async (given: unknown) => box.admin.answer({ ...charge, ...(given as Given) }, { happened: false }),
  markHandled: call('markHandled', 'mail', []),
  removeConsumer: call('removeConsumer', 'mail'),
  removeSink: call('removeSink', 'queue'),
  prune: call('prune'),
  doctor: call('doctor'),
  audit: call('audit'),
  createTestBox: async (given: unknown) => createTestBox({ db: fromPg(pool), ...(given as Given) } as never),
  deliver: async (given: unknown) => box.deliver({ id: '1', type: 'note', data: 1 }, given as never),
  waitFor: async (given: unknown) => box.waitFor('1', 'handled', given as never),
  crashAt: async (given: unknown) => crashAt('claimed', given as never),
  driverConformance: async (given: unknown) =>
    driverConformance({ open: async () => undefined as never, capabilities: given as never }),
  brokerConformance: async (given: unknown) =>
    brokerConformance({ open: async () => undefined as never, capabilities: given as never }),
}
type Call = keyof typeof CALLS

/** Each call has a slip here, so that a new one cannot be forgotten. */
const SLIPS: Readonly<Record<Call, [wrong: string, right: string]>> = {
  send: ['kye', 'key'],
  sendMany: ['kye', 'key'],
  messages: ['limits', 'limit'],
  message: ['sorce', 'source'],
  retry: ['persecond', 'perSecond'],
  discard: ['dryrun', 'dryRun'],
  pause: ['reson', 'reason'],
  resume: ['reson', 'reason'],
  answer: ['reson', 'reason'],
  'answer, what is told': ['reslut', 'result'],
  'answer, where': ['sorce', 'source'],
  markHandled: ['sorce', 'source'],
  removeConsumer: ['discrad', 'discard'],
  removeSink: ['reson', 'reason'],
  prune: ['reson', 'reason'],
  doctor: ['lag', 'lagMs'],
  audit: ['limits', 'limit'],
  createTestBox: ['maxByte', 'maxBytes'],
  deliver: ['time', 'times'],
  waitFor: ['timeout', 'timeoutMs'],
  crashAt: ['time', 'times'],
  driverConformance: ['script', 'scripts'],
  brokerConformance: ['redeliverd', 'redelivered'],
}

test.each(Object.entries(SLIPS) as [Call, [string, string]][])(
  '%s refuses a misspelt option, and says which one is meant',
  async (what, [wrong, right]) => {
    const refused = { message: expect.stringMatching(new RegExp(`"${wrong}"; did you mean ${right}\\?`)) }
    await expect(CALLS[what]({ [wrong]: 1 })).rejects.toMatchObject(refused)
  },
)

test.each<[Call, Given]>([
  ['send', { headers: 'trace: 1' }],
  ['retry', { limit: '10' }],
  ['retry', { limit: null }],
  ['retry', { dryRun: 'false' }],
  ['retry', { perSecond: 0 }],
  ['retry', { signal: {} }],
  ['retry', { progress: true }],
  ['discard', { dryRun: null }],
  ['pause', { by: '' }],
  ['pause', { reason: 7 }],
  ['answer, what is told', { happened: 'false' }],
  ['markHandled', { source: 7 }],
  ['removeConsumer', { forget: 'false' }],
  ['messages', { limit: 0 }],
  ['audit', { limit: 1_001 }],
  ['createTestBox', { schema: 'public' }],
  ['deliver', { times: '2' }],
  ['deliver', { times: 0.5 }],
  ['waitFor', { timeoutMs: NaN }],
  ['crashAt', { times: '2' }],
  ['driverConformance', { scripts: 'no' }],
  ['brokerConformance', { waitMs: '1s' }],
])('%s refuses %j, by its name', async (what, given) => {
  const [name] = Object.keys(given)
  await expect(CALLS[what](given)).rejects.toThrow(new RegExp(`\\b${name}\\b`))
})

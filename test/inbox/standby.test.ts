/** Synchronous replication: nothing is acknowledged that is on no standby. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { idempotent } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { gate, note } from './fixture.js'

let server: PostgresServer
let pool: pg.Pool
/** Its commits do not wait. */
let admin: pg.Client
beforeAll(async () => {
  server = await startPostgres()
  admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  await admin.query('create role box login; grant create on database postgres to box')
  const url = new URL(server.url)
  url.username = 'box'
  pool = new pg.Pool({ connectionString: url.href, max: 5 })
  pool.on('error', () => {})
}, 120_000)
afterAll(async () => {
  await pool?.end()
  await admin?.end()
  await server?.stop()
})

/** A standby that is away: every commit waits for it. */
async function setStandby(names: string): Promise<void> {
  await admin.query(`alter system set synchronous_standby_names = '${names}'`)
  await admin.query('select pg_reload_conf()')
  const shown = async (): Promise<unknown> =>
    (await admin.query<{ now: string }>(`select current_setting('synchronous_standby_names') now`)).rows[0]!.now
  await waitUntil(async () => (await shown()) === names, { what: 'the setting' })
}

/** Sets a standby that is away, and waits until a commit does: the process of the server that says so hears of it late. */
async function stall(): Promise<void> {
  await setStandby('nobody')
  const probe = new pg.Client({ connectionString: server.url })
  probe.on('error', () => {})
  await probe.connect()
  const { rows } = await probe.query<{ pid: number }>('select pg_backend_pid() pid')
  const waits = async (): Promise<boolean> => {
    let over = false
    const end = (): void => void (over = true)
    probe.query(`select pg_logical_emit_message(true, 'probe', '')`).then(end, end)
    await waitUntil(async () => over || (await waiting()).includes(rows[0]!.pid), { what: 'the probe' })
    return !over
  }
  await waitUntil(waits, { what: 'commits to wait' })
  await admin.query('select pg_terminate_backend($1)', [rows[0]!.pid])
  await waitUntil(async () => (await waiting()).length === 0, { what: 'the probe to end' })
}

/** Who waits for the standby. */
async function waiting(): Promise<number[]> {
  const { rows } = await admin.query<{ pid: number }>(`select pid from pg_stat_activity where wait_event = 'SyncRep'`)
  return rows.map(({ pid }) => pid)
}

test.each(['stored', 'inline', 'inline group', 'quarantined'] as const)(
  'a copy of a message whose commit was not confirmed is not acknowledged before the standby has it: %s',
  async (how) => {
    const box = createBox({ db: fromPg(pool), schema: `standby_${how.replace(' ', '_')}` })
    box.consumer('a', { note: () => undefined }, { mode: how.startsWith('inline') ? 'inline' : 'stored' })
    await box.migrate()
    const incoming = how === 'quarantined' ? note('1', { type: 'unknown' }) : note('1')
    const deliver = async () => {
      if (how === 'inline') return box.handle(incoming)
      return (await (how === 'inline group' ? box.handle([incoming, note('2')]) : box.receive([incoming])))[0]!
    }
    await setStandby('nobody')
    try {
      const first = deliver().then(
        (outcome) => outcome,
        () => undefined,
      )
      const [pid] = await waitUntil(async () => ((await waiting()).length > 0 ? await waiting() : undefined), {
        what: 'a commit that waits for the standby',
      })
      await admin.query('select pg_cancel_backend($1)', [pid])
      let answered = false
      const copy = deliver().then((outcome) => {
        answered = true
        return outcome
      })
      await waitUntil(async () => answered || (await waiting()).some((one) => one !== pid), {
        what: 'the copy to wait for the standby',
      })
      expect(answered).toBe(false)
      await setStandby('')
      expect(await copy).toMatchObject({ ack: true })
      expect((await first)?.ack ?? false).toBe(false)
    } finally {
      await setStandby('')
    }
  },
)

const openBox = (schema: string) => createBox({ db: fromPg(pool), schema })
type OpenBox = ReturnType<typeof openBox>

/** Each runs an id once, in one transaction, and answers what became of it after the COMMIT. */
const RUN_ONCE: Readonly<Record<string, (box: OpenBox) => (id: string) => Promise<unknown>>> = {
  endpoint(box) {
    const created = (): Response => Response.json({ charged: true }, { status: 201 })
    const endpoint = idempotent(box, { name: 'charges', scope: 'shared' }, created)
    return async (id) => {
      const asked = { method: 'POST', headers: { 'idempotency-key': id }, body: '{}' }
      const { status, headers } = await endpoint.fetch(new Request('http://localhost/charges', asked))
      return [status, headers.get('idempotent-replayed')]
    }
  },
  once: (box) => async (id) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { status } = await box.once(client, 'a', { id }, () => undefined)
      await client.query('commit')
      return status
    } finally {
      client.release()
    }
  },
}

test.each([
  ['endpoint', [503, null], [201, 'true']],
  ['once', 'handled', 'duplicate'],
] as const)(
  'what a transaction finds done already is not answered before the standby has it: %s',
  async (how, unconfirmed, replayed) => {
    const box = openBox(`standby_done_${how}`)
    const run = RUN_ONCE[how]!(box)
    await box.migrate()
    // What is registered by the first one is registered before commits wait.
    await run('another')
    // A COMMIT waits also where its transaction has cleaned up a page that it read: here there is none left to clean.
    await admin.query('vacuum')
    await stall()
    try {
      const first = run('1')
      const [pid] = await waitUntil(async () => ((await waiting()).length > 0 ? await waiting() : undefined), {
        what: 'a commit that waits for the standby',
      })
      await admin.query('select pg_cancel_backend($1)', [pid])
      expect(await first).toEqual(unconfirmed)
      let answered = false
      const copy = run('1').finally(() => (answered = true))
      await waitUntil(async () => answered || (await waiting()).length > 0, {
        what: 'the copy to wait for the standby',
      })
      expect(answered).toBe(false)
      await setStandby('')
      expect(await copy).toEqual(replayed)
    } finally {
      await setStandby('')
    }
  },
)

test.each(['inline', 'inline group', 'redelivered'] as const)(
  'a message whose COMMIT lost its connection while it waited is not acknowledged before the standby has it: %s',
  async (how) => {
    const box = createBox({ db: fromPg(pool), schema: `standby_lost_${how.replace(' ', '_')}` })
    const ids = how === 'inline group' ? ['1', '2'] : ['1']
    const ran: string[] = []
    const stalled = gate()
    const run = async ({ id }: { id: string }): Promise<void> => {
      // What is redelivered is taken into the box before, by a commit of its own.
      if (ran.push(id) === 1) await stall().finally(stalled.open)
    }
    box.consumer('a', { note: run }, { mode: 'inline' })
    await box.migrate()
    try {
      let answered = false
      const outcomes = box.handle(ids.map((id) => note(id, { redelivered: how === 'redelivered' })))
      void outcomes.finally(() => (answered = true))
      await stalled.opened
      const [pid] = await waitUntil(async () => ((await waiting()).length > 0 ? await waiting() : undefined), {
        what: 'the commit to wait for the standby',
      })
      await admin.query('select pg_terminate_backend($1)', [pid])
      await waitUntil(async () => answered || (await waiting()).some((one) => one !== pid), {
        what: 'the answer to wait for the standby',
      })
      expect(answered).toBe(false)
      await setStandby('')
      expect(await outcomes).toMatchObject(ids.map(() => ({ status: 'handled', ack: true })))
      expect(ran).toEqual(ids)
    } finally {
      await setStandby('')
    }
  },
)

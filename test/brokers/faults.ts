/**
 * What must hold with any broker while processes are killed, the database hangs and the broker goes away:
 *
 *     brokerFaults(new URL('./adapter.mjs', import.meta.url))
 *
 * The sizes are those of the promise. For what a suite cannot afford there are variables: `BROKER_OUTAGE_MS` for the
 * outage of the broker, `ONCEBOX_OUTAGES=180000,60000,60000` for those of the database (ms that it is stopped, read-only
 * and silent), `ONCEBOX_CUTS=8000,60,50,2000` for the cuts (messages, keys, ms of a handler, ms from cut to cut; 0 for
 * five cuts in all). What a long run measured is a line that begins with `measured`.
 */
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { createBox, type Message } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type { ChannelOptions, RawMessage } from 'oncebox/testing'
import type { Service } from '../../tools/services/process.mjs'
import { openArena, type Arena } from '../crash/arena.js'
import { startPostgres } from '../support/postgres.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { startProxy } from '../support/proxy.js'
import { loadAdapter, type Adapter, type Settings } from './adapter.js'

const OUTAGE_MS = Number(process.env['BROKER_OUTAGE_MS'] ?? 3_000)
const DATABASE_OUTAGES_MS = (process.env['ONCEBOX_OUTAGES'] ?? '1500,1500,1500').split(',').map(Number)
/** What a busy machine can keep, and less than a long outage needs. */
const ACK_MS = Math.max(3_000, Math.min(...DATABASE_OUTAGES_MS) / 6)
const CUTS = (process.env['ONCEBOX_CUTS'] ?? '240,20,5,0').split(',').map(Number) as [number, number, number, number]
const SCHEMA = 'oncebox'
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export interface FaultOptions {
  /** Default 5 000. */
  messages?: number
  /** How often the consumer is killed. Default 10. */
  consumerKills?: number
  /** How often the relay is killed. Default 20. */
  relayKills?: number
  /** A killed broker keeps what it has. Default true; else producers publish again what they published. */
  durable?: boolean
  /** Of the source, in all tests: short timeouts, for instance. */
  sourceOptions?: Record<string, unknown>
  /** For one condition; three times as long for a whole test. Default 120 000. */
  waitMs?: number
}

export function brokerFaults(adapterUrl: URL, options: FaultOptions = {}): void {
  const { messages = 5_000, consumerKills = 10, relayKills = 20, durable = true, sourceOptions } = options
  const { waitMs = 120_000 } = options
  const timeout = 3 * waitMs
  const file = fileURLToPath(adapterUrl)
  let adapter: Adapter
  let service: Service
  let arena: Arena
  let settings: Settings
  const children: Child[] = []

  beforeAll(async () => {
    adapter = await loadAdapter(adapterUrl)
    service = await adapter.start()
  }, 300_000)
  afterAll(() => service?.stop())
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()))
    await arena?.close()
    if (settings) await adapter.remove(settings).catch(() => undefined)
  })

  /** A database and a channel of the broker, both empty. */
  const open = async (
    mode: 'inline' | 'stored' = 'stored',
    channel?: ChannelOptions,
    further: Record<string, unknown> = {},
    serverUrl?: string,
  ): Promise<void> => {
    arena = await openArena(`${adapter.name}_${mode}`, serverUrl)
    await arena.register([{ name: 'effects', types: ['order.placed'], options: { mode, ...further } }])
    settings = await adapter.create(service.url, channel)
  }
  const spawn = (kind: 'consumer' | 'relay', fields: Record<string, unknown> = {}): Child => {
    const broker = { adapter: file, settings, url: arena.url, schema: SCHEMA, sourceOptions, mode: 'stored', ...fields }
    const script = new URL(`./children/${kind}.mjs`, import.meta.url)
    const child = spawnChild(script, { env: { BROKER: JSON.stringify(broker) } })
    children.push(child)
    return child
  }
  const started = async (child: Child): Promise<Child> => {
    await child.next('ready', { timeoutMs: 60_000 })
    child.send('start')
    await child.next('started', { timeoutMs: 60_000 })
    return child
  }
  const until = (condition: () => boolean | Promise<boolean>, what: string): Promise<unknown> =>
    waitUntil(condition, { timeoutMs: waitMs, everyMs: 25, what })
  const count = async (text: string): Promise<number> =>
    (await arena.pool.query<{ n: number }>(`select count(*)::int n from ${text}`)).rows[0]!.n
  const effects = (): Promise<number> => count('effect')

  /** Effects that came after one of a later message of their key. */
  const breaks = async (): Promise<string[]> => {
    const { rows } = await arena.pool.query<{ id: string }>(
      `select id from (select n, id, key, substr(id, 3)::int seq, max(substr(id, 3)::int)
         over (partition by key order by n rows between unbounded preceding and 1 preceding) before from effect) e
       where seq < before order by n`,
    )
    return rows.map(({ id }) => id)
  }

  /** Every id has one effect, and the broker nothing left. */
  const expectEachOnce = async (ids: readonly string[]): Promise<void> => {
    await until(async () => (await count('(select distinct id from effect) e')) >= ids.length, `${ids.length} effects`)
    await until(async () => (await adapter.backlog(settings)) === 0, 'the broker to have nothing left')
    await arena.drained({ timeoutMs: waitMs })
    const { rows } = await arena.pool.query<{ id: string; n: number }>(
      'select id, count(*)::int n from effect group by id having count(*) > 1',
    )
    expect(rows).toEqual([])
    expect(await effects()).toBe(ids.length)
  }
  /** A producer does not give up; and sends no more at a time than a busy machine can in the time of one request. */
  const publish = async (messages: readonly RawMessage[]): Promise<void> => {
    for (let at = 0; at < messages.length; at += 500) {
      const attempt = () =>
        adapter.publish(settings, messages.slice(at, at + 500)).then(
          () => true,
          () => false,
        )
      await until(attempt, 'the broker to take messages')
    }
  }
  const eventsOf = (ids: readonly string[]): RawMessage[] => ids.map((id, n) => rawEvent(adapter, id, `key-${n % 50}`))
  const keyed = (ids: readonly string[], keys: number): RawMessage[] =>
    ids.map((id) => rawEvent(adapter, id, `key-${Number(id.slice(2)) % keys}`))
  const numbered = (from: number, length: number): string[] => Array.from({ length }, (_, n) => `m-${from + n}`)
  /** For the reader of a long run. */
  const measured = (what: string): void => {
    process.stderr.write(`measured with ${service.name} ${service.version}, ${what}\n`)
  }
  const needsPrivate = ({ skip }: TestContext): void => {
    if (service.kind === 'given') skip(`${service.name} was given, and is not ours to kill`)
  }
  /** A mock keeps everything in memory, its port too. */
  const canRestart = (): boolean => service.kind !== 'mock'

  describe.each(['inline', 'stored'] as const)('%s', (mode) => {
    test(
      `${messages} messages have one effect each, with ${consumerKills} kills of the consumer and a restart of the broker`,
      { timeout },
      async (context) => {
        needsPrivate(context)
        await open(mode)
        const ids = numbered(0, messages)
        const portion = Math.ceil(messages / (consumerKills + 1))
        let spare = spawn('consumer', { mode })
        let hits = 0
        for (let kill = 0; kill < consumerKills; kill++) {
          const child = await started(spare)
          spare = spawn('consumer', { mode })
          const before = await effects()
          const sent = Math.min(messages, (kill + 1) * portion)
          await publish(eventsOf(ids.slice(kill * portion, sent)))
          const enough = before + 1 + Math.floor(Math.random() * portion * 0.3)
          await until(async () => (await effects()) >= enough, `${enough} effects before kill ${kill}`)
          await child.kill()
          if ((await effects()) < sent) hits++
          if (kill !== Math.floor(consumerKills / 2)) continue
          if (canRestart()) await service.restart()
          else process.stderr.write(`${service.name} cannot be restarted: tested without that\n`)
          if (!durable) await publish(eventsOf(ids.slice(0, sent)))
        }
        await started(spare)
        await publish(eventsOf(ids.slice(consumerKills * portion)))
        await expectEachOnce(ids)
        // Else no kill hit anything, and the test has shown nothing.
        expect(hits).toBeGreaterThan(0)
      },
    )
  })

  test('while the database hangs nothing is acknowledged', { timeout }, async () => {
    await open('inline')
    await using proxy = await startProxy(arena.url)
    const child = await started(spawn('consumer', { mode: 'inline', url: proxy.url }))
    const ids = numbered(0, 100)
    await publish(eventsOf(['first']))
    await until(async () => (await effects()) === 1, 'the first effect')
    await until(async () => (await adapter.backlog(settings)) === 0, 'the first acknowledgement')

    proxy.pause()
    await publish(eventsOf(ids))
    await until(async () => (await adapter.backlog(settings)) === ids.length, 'all of them to be with the broker')
    const end = Date.now() + 2_000
    while (Date.now() < end) {
      expect(await adapter.backlog(settings)).toBe(ids.length)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    // Whatever it had taken is not lost with it.
    await child.kill()
    proxy.resume()
    await started(spawn('consumer', { mode: 'inline' }))
    await expectEachOnce(['first', ...ids])
  })

  test.each(['inline', 'stored'] as const)(
    'an outage of the database (stopped, read-only, silent) costs nothing but time, %s',
    { timeout: timeout + DATABASE_OUTAGES_MS.reduce((sum, ms) => sum + ms, 0) },
    async (mode) => {
      // On arrival the source keeps the order; what is stored is kept in order by its consumer.
      const order = mode === 'stored' ? { order: 'key' } : {}
      await using server = await startPostgres()
      await open(mode, { deliveryLimit: 3, ackMs: ACK_MS }, order, server.url)
      await using proxy = await startProxy(arena.url)
      const child = await started(spawn('consumer', { mode, url: proxy.url, options: order }))
      const setReadOnly = async (isReadOnly: boolean): Promise<void> => {
        await arena.pool.query(`alter system set default_transaction_read_only = ${String(isReadOnly)}`)
        await arena.pool.query('select pg_reload_conf()')
        // All sessions are told in one go, some time after the answer.
        const isSet = async (): Promise<boolean> => {
          const { rows } = await arena.pool.query<{ on: boolean }>(
            `select current_setting('default_transaction_read_only')::boolean as on`,
          )
          return rows[0]!.on === isReadOnly
        }
        await until(isSet, 'the server to reload its settings')
      }
      const ways: [what: string, begin: () => unknown, end: () => unknown][] = [
        ['stopped', () => server.kill('SIGINT'), () => server.restart()],
        ['read-only', () => setReadOnly(true), () => setReadOnly(false)],
        ['silent', () => proxy.pause(), () => proxy.resume()],
      ]
      const [portion, keys] = [60, 12]
      const begun = Date.now()
      await publish(keyed(numbered(0, portion), keys))
      await until(async () => (await effects()) === portion, 'the first effects')
      const caughtUp = [`without an outage ${Date.now() - begun} ms`]
      await until(async () => (await adapter.backlog(settings)) === 0, 'their acknowledgement')
      for (const [at, [what, begin, end]] of ways.entries()) {
        const ms = DATABASE_OUTAGES_MS[at]!
        await begin()
        await publish(keyed(numbered((at + 1) * portion, portion), keys))
        await new Promise((resolve) => setTimeout(resolve, ms))
        const isWithBroker = async (): Promise<boolean> => (await adapter.backlog(settings)) === portion
        await until(isWithBroker, `all of them to be with the broker while the database is ${what}`)
        await end()
        const back = Date.now()
        await until(async () => (await effects()) >= (at + 2) * portion, 'it to catch up')
        caughtUp.push(`${what} for ${ms} ms, caught up in ${Date.now() - back} ms`)
      }
      await expectEachOnce(numbered(0, portion * (ways.length + 1)))
      expect(await arena.failures()).toEqual([])
      if (adapter.capabilities.order !== false) expect(await breaks()).toEqual([])
      // A line for each of its parts that cannot work, and none for each attempt.
      const said = (kind: string): number => child.events.filter(({ event }) => event === kind).length
      measured(`${mode}: ${caughtUp.join('; ')}; ${said('line')} lines of log, ${said('trouble')} errors of hooks`)
      if (process.env['ONCEBOX_OUTAGES']) {
        for (const { event, message } of child.events) measured(`${event}: ${String(message)}`)
      }
      expect(said('trouble')).toBeLessThanOrEqual(8 * ways.length)
    },
  )

  const [total, keys, handlerMs, everyMs] = CUTS
  // Handlers run one after the other, and a busy machine needs several times as long.
  const cutsMs = 4 * timeout + 10 * total * handlerMs
  test('cuts of its connection to the broker: one effect each, order kept', { timeout: cutsMs }, async () => {
    await open('inline')
    const child = await started(spawn('consumer', { mode: 'inline', handlerMs }))
    const ids = numbered(0, total)
    await publish(keyed(ids, keys))
    const begun = Date.now()
    let cuts = 0
    let lastCut = Date.now()
    const cutIf = (isTime: boolean): void => {
      if (!isTime) return
      cuts++
      lastCut = Date.now()
      child.send('cut')
    }
    const isDone = async (): Promise<boolean> => {
      const done = await effects()
      cutIf(everyMs > 0 ? Date.now() - lastCut >= everyMs : done < total && done >= ((cuts + 1) * total) / 6)
      return done >= total
    }
    await waitUntil(isDone, { timeoutMs: cutsMs, everyMs: 25, what: `${total} effects` })
    await expectEachOnce(ids)
    measured(`${total} messages on ${keys} keys, ${cuts} cuts, in ${Date.now() - begun} ms`)
    if (adapter.capabilities.order !== false) expect(await breaks()).toEqual([])
    expect(cuts).toBeGreaterThan(0)
  })

  test('a table that others hold counts no attempt of a message that is delivered again', { timeout }, async () => {
    await open('inline')
    const holder = await arena.pool.connect()
    try {
      await holder.query('begin')
      await holder.query('lock table effect in exclusive mode')
      const first = await started(spawn('consumer', { mode: 'inline' }))
      await publish(eventsOf(['m-0']))
      await until(async () => (await arena.busySessions('broker-consumer')) > 0, 'its handler to wait')
      await first.kill()
      const second = await started(spawn('consumer', { mode: 'inline' }))
      await until(async () => (await arena.busySessions('broker-consumer')) > 0, 'the second delivery')
      await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS / 2))
      expect(await count(`${SCHEMA}.attempt`)).toBe(0)
      expect(second.events.filter(({ event }) => event === 'trouble')).toEqual([])
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    await expectEachOnce(['m-0'])
    expect((await arena.effects())[0]).toMatchObject({ attempt: 1 })
  })

  test('a broker that is away at the start, and later, is waited for', { timeout }, async (context) => {
    needsPrivate(context)
    context.skip(!canRestart(), `${service.name} cannot be started again`)
    await open()
    await service.kill()
    const child = await started(spawn('consumer'))
    await child.next('trouble', { timeoutMs: waitMs })
    await service.resume()
    await publish(eventsOf(numbered(0, 50)))
    await until(async () => (await effects()) === 50, 'it to begin')
    await until(async () => (await adapter.backlog(settings)) === 0, 'the acknowledgements')

    await service.kill()
    await child.next('trouble', { timeoutMs: waitMs })
    const cpuMs = async (): Promise<number> => {
      child.send('usage')
      return (await child.next('usage'))['cpuMs'] as number
    }
    const troubles = (): number => child.events.filter(({ event }) => event === 'trouble').length
    const before = { cpuMs: await cpuMs(), troubles: troubles() }
    await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS))
    expect(troubles() - before.troubles).toBeLessThanOrEqual(10 + OUTAGE_MS / 50)
    expect((await cpuMs()) - before.cpuMs).toBeLessThan(500 + OUTAGE_MS / 2)

    await service.resume()
    await publish(eventsOf(numbered(50, 50)))
    await expectEachOnce(numbered(0, 100))
    // It is the same process all along.
    expect((await arena.effects()).every(({ pid }) => pid === child.pid)).toBe(true)
  })

  test(
    `no event is lost while the relay is killed ${relayKills} times, and none has two effects`,
    { timeout },
    async () => {
      await open()
      const box = createBox({ db: fromPg(arena.pool), schema: SCHEMA, logger: SILENT })
      const consumer = await started(spawn('consumer'))
      const portion = 100
      const unpublished = (): Promise<number> => count(`${SCHEMA}.outbox where published_at is null`)
      const send = async (ids: readonly string[]): Promise<void> => {
        const client = await arena.pool.connect()
        try {
          await client.query('begin')
          const events = ids.map((id, n) => ({ type: 'order.placed', data: { id }, id, key: `key-${n % 20}` }))
          await box.sendMany(client, events)
          await client.query('commit')
        } finally {
          client.release()
        }
      }
      let spare = spawn('relay')
      let hits = 0
      let sent = 0
      for (let kill = 0; kill < relayKills; kill++) {
        const child = await started(spare)
        spare = spawn('relay')
        const before = (await unpublished()) + portion
        await send(numbered(sent, portion))
        sent += portion
        await until(async () => (await unpublished()) < before, 'something to be published')
        await child.kill()
        if ((await unpublished()) > 0) hits++
      }
      await started(spare)
      await expectEachOnce(numbered(0, sent))
      expect(hits).toBeGreaterThan(0)
      expect(consumer.events.filter(({ event }) => event === 'trouble')).toEqual([])
    },
  )

  test('headers, key, id and trace context survive outbox, broker and inbox', { timeout }, async () => {
    await open()
    await using sender = await openArenaBox('sender')
    const received: Message[] = []
    const receiver = createBox({ db: fromPg(arena.pool), schema: SCHEMA, logger: SILENT })
    receiver.consumer('witness', { 'order.traced': (message) => void received.push(message) })
    receiver.from(adapter.source(settings, sourceOptions))
    sender.box.to(adapter.sink(settings))
    await Promise.all([receiver.start(), sender.box.start()])
    try {
      const headers = {
        traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
        tracestate: 'vendor=value',
        'X-Tenant': 'żółć',
        correlationid: 'the-first',
      }
      const data = { text: 'żółć 🎈', big: '12345678901234567890' }
      const client = await sender.pool.connect()
      await client.query('begin')
      await sender.box.send(client, 'order.traced', data, { id: 'traced', key: 'key-1', subject: 'it', headers })
      await client.query('commit')
      client.release()
      await until(() => received.length > 0, 'the message')
      const [message] = received
      expect(message).toMatchObject({ id: 'traced', type: 'order.traced', key: 'key-1', subject: 'it', data, headers })
      expect(message!.correlationId).toBe('the-first')
      expect(message!.time).toBeInstanceOf(Date)
    } finally {
      await Promise.all([receiver.stop(), sender.box.stop()])
    }
  })

  /** A second box, on a database of its own. */
  const openArenaBox = async (name: string) => {
    const { url, close } = await openArena(`${adapter.name}_${name}`)
    const pool = new pg.Pool({ connectionString: url })
    pool.on('error', () => {})
    const box = createBox({ db: fromPg(pool), schema: SCHEMA, logger: SILENT })
    await box.migrate()
    return {
      box,
      pool,
      async [Symbol.asyncDispose]() {
        await pool.end()
        await close()
      },
    }
  }

  test.each(['inline', 'stored'] as const)(
    'poison, a message without an id and a large one are kept, %s, while the rest flows',
    { timeout },
    async (mode) => {
      await open(mode)
      const largest = adapter.capabilities.maxBytes ?? 5 * 1024 * 1024
      await started(spawn('consumer', { mode, maxBytes: Math.min(1_048_576, Math.floor(largest / 4)) }))
      const ids = numbered(0, 60)
      const [first, second] = [eventsOf(ids.slice(0, 30)), eventsOf(ids.slice(30))]
      const { id: _, ...withoutId } = rawEvent(adapter, 'none', 'key')
      const { [`${prefixOf(adapter)}id`]: __, ...headers } = withoutId.headers
      await publish([
        ...first,
        { ...rawEvent(adapter, 'poison', 'key'), body: '{"no":' },
        { ...withoutId, headers },
        { ...rawEvent(adapter, 'large', 'key'), body: JSON.stringify('x'.repeat(largest - 4_096)) },
        ...second,
      ])
      await expectEachOnce(ids)
      const quarantined = await arena.pool.query(
        `select nullif(id, '') id, reason from ${SCHEMA}.quarantine order by reason`,
      )
      expect(quarantined.rows).toEqual([
        { id: null, reason: 'no-id' },
        { id: 'large', reason: 'too-large' },
        { id: 'poison', reason: 'undecodable' },
      ])
    },
  )
}

/** A CloudEvent in binary mode, as another producer publishes it. */
function rawEvent(adapter: Adapter, id: string, key: string): RawMessage {
  const attributes = { specversion: '1.0', id, source: 'elsewhere', type: 'order.placed', partitionkey: key }
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  for (const [name, value] of Object.entries(attributes)) headers[`${prefixOf(adapter)}${name}`] = value
  return { headers, body: JSON.stringify({ id }), key, id }
}

function prefixOf({ capabilities }: Adapter): string {
  return capabilities.prefix ?? 'ce-'
}

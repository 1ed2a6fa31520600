/**
 * A bank over two servers, six boxes by key: what examples/scale shows, while a worker is killed, a server is stopped at
 * once, and a box moves.
 *
 * Against Citus, with a coordinator and at least one worker node, and the bank's table distributed:
 * `CITUS_URLS=postgres://…coordinator…,postgres://…worker… npx vitest run test/scale`
 */
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findOrInstallBinaries } from '../../tools/postgres/binaries.mjs'
import { startPostgres, statement } from '../../tools/postgres/server.mjs'
import { ROOT } from '../docs/markdown.js'
import { waitUntil } from '../support/processes.js'
import { openBank, transfers, type Bank } from './bank.js'
import { BOXES, ENTRY, migrate, schemaOf, shardOf } from './example.js'

const run = promisify(execFile)
/** Much of it is waiting for leases and servers, on a busy machine for longer. */
const TIMEOUT_MS = 300_000
const ACCOUNTS = 40
const ROUNDS = Number(process.env['SCALE_ROUNDS'] ?? 8)
const MOVED = shardOf('account-0')

interface Node {
  readonly url: string
  /** Ends every session at once, and the server where it is ours; then it comes back. */
  crash(): Promise<void>
  recover(): Promise<void>
}

interface Layout {
  readonly name: string
  open(): Promise<{ nodes: readonly [Node, Node]; entries?: string; close(): Promise<void> }>
}

const plain: Layout = {
  name: 'two PostgreSQL servers',
  async open() {
    const servers = await Promise.all([startPostgres(), startPostgres()])
    const [first, second] = servers.map((server) => ({
      url: server.url,
      crash: () => server.kill('SIGQUIT'),
      recover: () => server.restart(),
    }))
    return {
      nodes: [first!, second!],
      close: async () => void (await Promise.all(servers.map((server) => server.stop()))),
    }
  },
}

const citusUrls = (process.env['CITUS_URLS'] ?? '').split(',').filter(Boolean)
const citus: Layout = {
  name: 'two nodes of Citus, the table of the handlers distributed',
  async open() {
    const entries = 'public.oncebox_scale_entry'
    const [coordinator = ''] = citusUrls
    await statement(coordinator, `drop table if exists ${entries}, ${entries}_two_phases`)
    await statement(coordinator, `create table ${entries} ${ENTRY}`)
    await statement(coordinator, `select create_distributed_table('${entries}', 'account')`)
    await statement(coordinator, `create table ${entries}_two_phases (n int not null)`)
    const shards = `shard_count => 2, colocate_with => 'none'`
    await statement(coordinator, `select create_distributed_table('${entries}_two_phases', 'n', ${shards})`)
    const [first, second] = citusUrls.slice(-2).map((plainUrl) => {
      const url = `${plainUrl}${plainUrl.includes('?') ? '&' : '?'}options=-c%20citus.enable_ddl_propagation%3Doff`
      const END = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
      return { url, crash: () => statement(plainUrl, END), recover: async () => {} }
    })
    const nodes = [first!, second!] as const
    for (const { url } of nodes) {
      for (let shard = 0; shard < BOXES; shard++) {
        await statement(url, `drop schema if exists ${schemaOf(shard)}, ${schemaOf(shard)}_moved cascade`)
      }
    }
    return { nodes, entries, close: async () => {} }
  },
}

if (citusUrls.length < 2) {
  const how = 'CITUS_URLS=<URL of the coordinator>,<URL of a worker node> npx vitest run test/scale'
  console.warn(`test/scale was not run against Citus, for CITUS_URLS does not name a cluster. To run it: ${how}`)
}

describe.each(citusUrls.length < 2 ? [plain] : [plain, citus])('$name', ({ open }) => {
  let opened: Awaited<ReturnType<Layout['open']>>
  let bank: Bank
  const first = transfers(ACCOUNTS, 1, ROUNDS)
  const second = transfers(ACCOUNTS, ROUNDS + 1, ROUNDS * 2)

  beforeAll(async () => {
    opened = await open()
    const placement = Array.from({ length: BOXES }, (_, shard) => opened.nodes[shard % 2]!.url)
    bank = await openBank({ placement, entries: opened.entries })
    await migrate(bank.shards)
  })
  afterAll(async () => {
    await bank?.close()
    await opened?.close()
  })

  /** A box of that server that has accounts. */
  const firstBoxOf = (url: string): number =>
    first.map(({ key = '' }) => shardOf(key)).find((shard) => bank.placement[shard] === url)!
  const claimed = async (box: number): Promise<number> =>
    (await bank.shards.query(box, `select from ${schemaOf(box)}.lane where token is not null`)).length

  test(
    'a worker that is killed and a server that is stopped at once lose, double and reorder nothing',
    { timeout: TIMEOUT_MS },
    async () => {
      const [stays, stops] = opened.nodes
      const [victim, far] = await Promise.all([bank.worker(stays.url), bank.worker(stops.url)])
      let stopped: Promise<void> | undefined
      const stop = async (): Promise<void> => {
        const before = bank.refused
        await stops.crash()
        if (!opened.entries) await waitUntil(() => bank.refused > before, { what: 'a sender to be refused' })
        await stops.recover()
      }

      // Handlers of one box wait for its table, so that the process is killed while it holds messages.
      const box = firstBoxOf(stays.url)
      const release = await hold(stays.url, opened.entries ?? `${schemaOf(box)}.entry`)
      const handed = bank.handIn(first, (done) => {
        if (done > first.length / 2) stopped ??= stop()
      })
      await waitUntil(async () => {
        await victim.kill('SIGSTOP')
        if (await claimed(box)) return true
        await victim.kill('SIGCONT')
        return false
      })
      await victim.kill('SIGKILL')
      expect(await claimed(box)).toBeGreaterThan(0)
      await release()
      const other = await bank.worker(stays.url)
      await handed
      await stopped
      await bank.expectBooked(first)

      expect(stopped).toBeDefined()
      await Promise.all([other.kill('SIGTERM'), far.kill('SIGTERM')])
    },
  )

  test(
    'a box that moves to the other server knows what it has handled, and takes nothing in on the way',
    { timeout: TIMEOUT_MS },
    async () => {
      const from = bank.placement[MOVED]!
      const to = opened.nodes.map(({ url }) => url).find((url) => url !== from)!

      // Senders go on by the old placement while the box moves, with copies of what was handled there.
      const before = bank.refused
      const handed = bank.handIn([...first, ...second])
      await moveBox(schemaOf(MOVED), from, to)
      await waitUntil(() => bank.refused > before, { what: 'a sender to be refused' })
      bank.placement[MOVED] = to
      await bank.reopen()
      const workers = await Promise.all(opened.nodes.map(({ url }) => bank.worker(url)))
      await handed

      await bank.expectBooked([...first, ...second])
      await Promise.all(workers.map((worker) => worker.kill('SIGTERM')))
    },
  )
})

/** Keeps writers off a table until it is released. */
async function hold(url: string, table: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('begin')
  await client.query(`lock table ${table} in share mode`)
  return () => client.end()
}

async function moveBox(schema: string, from: string, to: string): Promise<void> {
  const { bin } = await findOrInstallBinaries()
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env['PATH']}` }
  await run('sh', [path.join(ROOT, 'examples/scale/move.sh'), schema, from, to], { env })
}

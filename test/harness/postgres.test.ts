import { existsSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scratchDatabase, scratchSchemaName, startPostgres, type PostgresServer } from '../support/postgres.js'

async function rows(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('a scratch database', () => {
  test('is empty, private, and dropped with whatever is connected', async () => {
    const one = await scratchDatabase('harness')
    const two = await scratchDatabase('harness')
    await rows(one.url, 'create table t (x int)')
    expect(await rows(two.url, `select from pg_tables where tablename = 't'`)).toEqual([])

    const left = new pg.Client({ connectionString: one.url })
    const dropped = new Promise((resolve) => left.on('error', resolve))
    await left.connect()
    await Promise.all([one.close(), two.close()])
    expect(await dropped).toBeInstanceOf(Error)
    await expect(rows(one.url, 'select 1')).rejects.toMatchObject({ code: '3D000' })
  })

  test('has schema names of its own', () => {
    expect(scratchSchemaName()).not.toBe(scratchSchemaName())
    expect(scratchSchemaName('Quoted "Name"')).toMatch(/^quoted_name__[0-9a-f]+$/)
  })
})

describe('a private server', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ settings: { max_connections: 20 } })
  })
  afterAll(async () => {
    await server?.stop()
    expect(existsSync(server.dataDir)).toBe(false)
  })

  test('listens on the loopback address alone, with durable commits', async () => {
    const settings = `select name, setting from pg_settings
      where name in ('fsync', 'listen_addresses', 'max_connections', 'synchronous_commit', 'unix_socket_directories')
      order by name`
    expect(await rows(server.url, settings)).toEqual([
      { name: 'fsync', setting: 'on' },
      { name: 'listen_addresses', setting: '127.0.0.1' },
      { name: 'max_connections', setting: '20' },
      { name: 'synchronous_commit', setting: 'on' },
      { name: 'unix_socket_directories', setting: '' },
    ])
  })

  test('keeps what was committed when it is killed and started again', async () => {
    await rows(server.url, 'create table kept as select 1 as x')
    const { pid, url } = server
    await server.kill('SIGKILL')
    await expect(rows(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })

    await server.restart()
    expect(server.pid).not.toBe(pid)
    expect(server.url).toBe(url)
    expect(await rows(url, 'select x from kept')).toEqual([{ x: 1 }])
  })

  test('can be restarted while clients are connected', async () => {
    const client = new pg.Client({ connectionString: server.url })
    const lost = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    await server.restart()
    expect(await lost).toBeInstanceOf(Error)
    expect(await rows(server.url, 'select x from kept')).toEqual([{ x: 1 }])
  })
})

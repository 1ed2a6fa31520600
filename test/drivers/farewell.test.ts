/** A server that ends its sessions says so in a warning: behind an answer that it has given, or instead of one. */
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'
import { startProxy } from '../support/proxy.js'

test.for([
  ['a COMMIT', undefined],
  ['a statement that commits on its own', /^insert/],
] as const)('a server that goes down right behind its answer to %s takes nothing back', async ([, statement]) => {
  await using server = await startPostgres()
  await using proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 1 })
  pool.on('error', () => {})
  try {
    const db = fromPg(pool)
    await db.query('create table note (id text)', [])
    const insert = (tx?: pg.PoolClient) => db.query(`insert into note values ($1) returning id`, ['1'], tx)
    const held = proxy.intercept({ at: 'after', ...(statement && { statement }) })
    const answered = statement ? insert() : db.transaction((tx) => insert(tx))
    const { answer, release } = await held
    expect(answer).toMatch(/^(COMMIT|INSERT 0 1)$/)
    // An immediate shutdown. What sessions are told has arrived at the proxy before the server is gone.
    await server.kill('SIGQUIT')
    await setImmediate()
    release()
    expect(await answered).toEqual([{ id: '1' }])
    await server.restart()
    expect(await db.query('select id from note', [])).toEqual([{ id: '1' }])
  } finally {
    await pool.end()
  }
})

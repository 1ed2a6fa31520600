import pg from 'pg'
import { expect, test } from 'vitest'
import { createTestBox } from 'oncebox/testing'
import { fromPg } from 'oncebox/pg'
test('x', async () => {
  const root = new pg.Client(process.env.DATABASE_URL)
  await root.connect()
  await root.query('drop database if exists icu')
  await root.query(`create database icu locale_provider icu icu_locale 'en' template template0`)
  const url = new URL(process.env.DATABASE_URL!); url.pathname = '/icu'
  const pool = new pg.Pool({ connectionString: url.href, max: 20 })
  {
  await using box = await createTestBox({ db: fromPg(pool) })
  let runs = 0
  box.consumer('a', { note: () => void runs++ })
  let failures = 0
  for (let round = 0; round < 15; round++) {
    const all = Array.from({ length: 100 }, (_, at) => ({ id: `${at % 2 ? 'X' : 'x'}${at}-${round}`, type: 'note', data: at }))
    const r = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => (i % 2 ? box.receive(all) : box.handle(all))))
    for (const x of r) if (x.status === 'rejected') { failures++; console.log(String(x.reason)) }
  }
  await box.drain()
  console.log({ runs, failures })
  expect(failures).toBe(0)
  }
  await pool.end()
  await root.query('drop database icu with (force)')
  await root.end()
}, 120000)

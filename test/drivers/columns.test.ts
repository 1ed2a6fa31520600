/** Names of columns: postgres.js may be told to change them, and what cannot be changed back must not be in a statement. */
import { readdirSync, readFileSync } from 'node:fs'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox, type Message } from 'oncebox'
import { fromPostgres } from 'oncebox/postgres'
import { createTestBox } from 'oncebox/testing'
import { exported } from '../interleavings/statements.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'

let database: ScratchDatabase
let sql: postgres.Sql
beforeAll(async () => {
  database = await scratchDatabase('columns')
  sql = postgres(database.url, { max: 2, onnotice: () => {} })
})
afterAll(async () => {
  await sql.end({ timeout: 0 })
  await database.close()
})

/** Words in snake case, each of which begins with a letter, or no name at all, by which nobody reads it. */
const SAFE = /^[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*$|^\?column\?$/

test('every statement answers with columns in snake case', async () => {
  const box = createBox({ db: fromPostgres(sql) })
  await box.migrate()
  const unsafe: string[] = []
  for (const [name, value] of await exported()) {
    const texts = typeof value === 'string' ? [value] : Object.values(value as Record<string, string>)
    for (const text of texts.filter((one) => /^\s*(with|select|insert|update|delete)\b/.test(one))) {
      const { columns } = await sql.unsafe(text.replace(/\b(ob|to_box)\./g, 'oncebox.'), ['']).describe()
      unsafe.push(...columns.filter((column) => !SAFE.test(column.name)).map((column) => `${name}: ${column.name}`))
    }
  }
  expect(unsafe).toEqual([])
})

test('no alias of a statement has an upper-case letter', () => {
  const folder = new URL('../../src/postgres/', import.meta.url)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const aliased = files.flatMap((file) =>
    [...readFileSync(new URL(file, folder), 'utf8').matchAll(/"[a-z]\w*[A-Z]\w*"/g)].map(
      ([alias]) => `${file}: ${alias}`,
    ),
  )
  expect(aliased).toEqual([])
})

const TRANSFORMS = { camel: postgres.camel, pascal: postgres.pascal, kebab: postgres.kebab }

describe.each(Object.entries(TRANSFORMS))('with postgres.%s', (_, transform) => {
  async function open() {
    const transformed = postgres(database.url, { max: 4, onnotice: () => {}, transform })
    onTestFinished(() => transformed.end({ timeout: 0 }))
    const box = await createTestBox({ db: fromPostgres(transformed) })
    onTestFinished(() => box[Symbol.asyncDispose]())
    return box
  }

  test.each(['none', 'key'] as const)('a handler in order %s gets the id that the producer gave', async (order) => {
    const box = await open()
    const seen: unknown[] = []
    const handler = ({ id, source }: Message) => void seen.push([id, source])
    box.consumer('a', { note: handler }, { order, identity: () => 'one business key' })
    await box.receive({ id: 'given', source: 'shop', type: 'note', key: 'k', data: {} })
    await box.drain()
    expect(seen).toEqual([['given', 'shop']])
  })

  test('what is older than its consumer retains is deleted', async () => {
    const box = await open()
    box.consumer('a', { note: () => undefined }, { retainMs: 60_000 })
    await box.receive({ id: '1', type: 'note', data: {} })
    await box.drain()
    expect(await box.admin.consumers()).toMatchObject([{ name: 'a', retainMs: 60_000 }])
    await box.clock.advance(3_600_000)
    expect(await box.admin.prune()).toBe(1)
  })

  test('a schema of a newer version that breaks this one is refused', async () => {
    const box = await open()
    await sql`update ${sql(box.schema)}.schema_version set version = 9999, compatible_from = 9999`
    await expect(box.start()).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    await expect(box.migrate()).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
  })
})

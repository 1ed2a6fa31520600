/** Statements, in a transaction and outside. */
import assert from 'node:assert/strict'
import { rejectsWithState } from './assertions.js'
import type { AddCase } from './suite.js'

export function statements<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase('a statement answers with rows by column name', async ({ driver }) => {
    assert.deepEqual(
      (await driver.query('select $1::text as one, $2::text as two', ['1', '2'])).map((row) => ({ ...row })),
      [{ one: '1', two: '2' }],
    )
    assert.deepEqual([...(await driver.query('select $1::text as none where false', ['1']))], [])
  })

  addCase('text comes back as it was sent', async ({ driver }) => {
    const texts = [
      '',
      ' ',
      "o'clock",
      '"quoted"',
      'back\\slash \\n \\u0041',
      'line\nbreak\ttab\r',
      'żółć 日本語 🎈',
      '$1 ? :x %s',
    ]
    texts.push('{"a":[1,2,{"b":"\\u0041"}]}', 'x'.repeat(1024 * 1024), 'ż🎈'.repeat(100_000))
    for (const text of texts) {
      const [row] = await driver.query('select $1::text as text', [text])
      assert.ok(row?.['text'] === text, `sent ${JSON.stringify(text.slice(0, 40))}`)
    }
  })

  addCase('a JSON text is read by the server as JSON', async ({ driver }) => {
    const [row] = await driver.query(
      `select (element ->> 'a') as a from jsonb_array_elements($1::text::jsonb) as element`,
      [JSON.stringify([{ a: 'b"c' }])],
    )
    assert.equal(row?.['a'], 'b"c')
  })

  addCase('numbers, booleans and null are values too', async ({ driver }) => {
    const text = 'select ($1::int + 1)::text as number, (not $2::bool)::text as boolean, $3::text as nothing'
    const [row] = await driver.query(text, [41, false, null])
    assert.deepEqual({ ...row }, { number: '42', boolean: 'true', nothing: null })
  })

  addCase(
    'several commands in one text run in order',
    async ({ driver, table }) => {
      const rows = await driver.query(
        `insert into ${table} values ('a'); insert into ${table} values ('b'); select count(*)::text as count from ${table}`,
        [],
      )
      assert.equal(rows[0]?.['count'], '2')
      const inside = driver.transaction((tx) =>
        driver.query(`delete from ${table}; select count(*)::text as count from ${table}`, [], tx),
      )
      assert.equal((await inside)[0]?.['count'], '0')
    },
    'scripts',
  )

  addCase('an error of the server carries its SQLSTATE, and the driver goes on', async (bench) => {
    const { driver, table } = bench
    for (let round = 0; round < 3; round += 1) {
      await rejectsWithState('22012', driver.query('select 1 / $1::int as x', [0]))
      await rejectsWithState('42601', driver.query('selekt', []))
      await rejectsWithState(
        '22012',
        driver.transaction((tx) => driver.query('select 1 / $1::int as x', [0], tx)),
      )
    }
    await driver.query(`insert into ${table} values ($1::text)`, ['after'])
    assert.deepEqual(await bench.values(), ['after'])
  })
}

/** Which statements may run while neighbours use the same transaction. */
import { expect, test } from 'vitest'
import { runsBeside } from '../../src/postgres/drivers/beside.js'
import { Watch } from '../../src/postgres/drivers/watch.js'

test.each([
  'insert into a values ($1)',
  '  INSERT INTO a (x) VALUES ($1) ON CONFLICT (x) DO UPDATE SET n = a.n + 1',
  'update a set x = x + 1 where id = $1;',
  'delete from a',
  'with b as (select 1) insert into a select * from b',
  'merge into a using b on a.x = b.x when matched then delete',
  'select * from "for" where updated',
  'values (1)',
  'select 1 /* for its own sake */ from a -- as always',
  "select 'for /* x */ update' from a",
  "select $q$ for -- $q$, 'update' from a",
  String.raw`select E'\' for --', 'update' from a`,
])('%s runs beside others', (text) => {
  expect(runsBeside(text)).toBe(true)
})

test.each([
  'savepoint a',
  'release savepoint a',
  'rollback to a',
  'set local x = 1',
  "select set_config('x', 'y', true)",
  "update pg_settings set setting = 'x' where name = 'application_name'",
  'select pg_advisory_xact_lock(1)',
  'select pg_try_advisory_xact_lock(1)',
  'select lastval()',
  "select currval('s')",
  'select * from a for update',
  'select * from a FOR NO KEY UPDATE skip locked',
  'select * from a for share',
  'select * from a\nfor\nkey share',
  'select * from a for /* keep it */ update',
  'select * from a for/**/update',
  'select * from a for -- no one else\nupdate',
  'select * from a for /* a /* b */ c */ no -- x\r\nkey /**/ update',
  "select '--' from a for /* ' */ share",
  'select $q$ /* $q$ from a for /**/ update',
  String.raw`select E'\' --' from a for /**/ update`,
  'select "/*" from a for /* " */ update',
  'select * from a limit 1for update',
  'insert into a values (1) /* x */ ; /* y */ insert into a values (2)',
  'declare c cursor for select 1',
  'fetch c',
  'copy a from stdin',
  'prepare p as select 1',
  'create temp table t (x int)',
  'insert into a values (1); insert into a values (2)',
  '-- why\nselect 1',
  '',
  undefined,
])('%s does not', (text) => {
  expect(runsBeside(text)).toBe(false)
})

test('a long text is read once', () => {
  for (const piece of ['/*', '/**/', '--', '--\n', "'", '$$', 'for ', 'for /**/', ';', '*/', '/* ']) {
    const started = performance.now()
    runsBeside(`select ${piece.repeat(200_000)}`)
    // Of quadratic time it would be minutes.
    expect(performance.now() - started).toBeLessThan(20_000)
  }
})

test('a text is judged in the same way however often it is sent, and whoever sent it before', () => {
  const codes = (watch: Watch, text: string) => [1, 2, 3].map(() => watch.refuse(text)?.code)
  let left = 0
  const beside = (): Watch => new Watch(new Watch(), { leave: () => void (left += 1) })
  for (let n = 0; n < 1_200; n++) expect(beside().refuse(`select ${n}`)).toBeUndefined()
  expect(codes(new Watch(), 'select * from a for update')).toEqual([undefined, undefined, undefined])
  expect(codes(beside(), 'select * from a for update')).toEqual(Array(3).fill('GROUP_ABANDONED'))
  expect(left).toBe(3)
  expect(codes(new Watch(), 'commit')).toEqual(Array(3).fill('HANDLER_COMMITTED'))
  expect(codes(new Watch(), 'set x = 1')).toEqual(Array(3).fill('SESSION_CHANGED'))
  const several = [new Watch(), new Watch()]
  for (const watch of several) watch.refuse('select 1; select 2')
  expect(several.map(({ suspicious }) => suspicious)).toEqual([true, true])
})

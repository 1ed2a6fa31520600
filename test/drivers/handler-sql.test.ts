import { expect, test } from 'vitest'
import { refusal } from '../../src/postgres/drivers/handler-sql.js'

const texts: Record<string, string[]> = {
  HANDLER_COMMITTED: [
    'insert into t values (1); commit',
    'commit',
    'COMMIT;',
    'Commit And Chain',
    '\n\t commit work',
    '-- a comment\ncommit',
    '-- a comment\r\ncommit',
    '/* one */ /* two /* nested */ still */ commit',
    '; ;commit',
    '\ufeffcommit',
    'end',
    'END TRANSACTION',
    'abort',
    'rollback',
    'rollback;',
    'rollback work',
    'rollback/**/transaction',
    'rollback and chain',
    "rollback prepared 'x'",
    "commit prepared 'x'",
    'begin',
    'begin isolation level serializable',
    'start transaction',
    "prepare transaction 'x'",
    "prepare /* */ transaction 'x'",
    'set constraints all immediate',
  ],
  SESSION_CHANGED: [
    'set search_path = x',
    'SET search_path TO x',
    'set session search_path = x',
    'set session characteristics as transaction read only',
    'set session authorization x',
    'set role x',
    'set time zone utc',
    'set "local" = 1',
    'reset search_path',
    'reset all',
    'discard all',
    'deallocate all',
    'deallocate prepare all',
    'listen x',
    'unlisten *',
    "load 'x'",
    "select set_config('app.tenant', $1, false)",
    "SELECT pg_catalog.Set_Config ( 'a', $1, /* for good */ FALSE )",
    "select set_config('a', coalesce($1, ','), 'off')",
    "select set_config('a', set_config('b', '1', false), true)",
    "insert into t values (1); select set_config('a', ')', false)",
    'select pg_advisory_lock(1)',
    'select 1 from t where pg_try_advisory_lock (id)',
    'select pg_advisory_lock_shared(1, 2)',
    'select PG_TRY_ADVISORY_LOCK_SHARED($1)',
  ],
  none: [
    '',
    'set constraints mine, yours immediate',
    ' ',
    '-- nothing',
    '/* never closed commit',
    'select 1',
    "select 'commit'",
    'rollback to x',
    'rollback to savepoint x',
    'ROLLBACK WORK TO SAVEPOINT x',
    'rollback transaction to x',
    'savepoint x',
    'release savepoint x',
    'set local search_path = x',
    'SET LOCAL\nx = 1',
    'set transaction isolation level serializable',
    'set constraints all deferred',
    'prepare x as select 1',
    'deallocate x',
    'commitment',
    'begin_something()',
    'endless',
    'notify x',
    '"commit"',
    '(commit)',
    "select set_config('app.tenant', $1, true)",
    "select set_config('app.tenant', $1, $2)",
    "select set_config('a', set_config('b', '1', true), true), false",
    "select f('a', 'b', false), current_setting('x'), 'set_config'",
    "insert into notes values ('set_config(1, 2, false) and pg_advisory_lock(1)')",
    '-- pg_advisory_lock(1)\nselect 1',
    'create function f() returns void language sql as $$ select pg_advisory_lock(1) $$',
    'select pg_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(2)',
    'select my_set_config(1, 2, false), pg_advisory_lock from t',
  ],
}

for (const [code, list] of Object.entries(texts)) {
  test.each(list)(`${code}: %j`, (text) => {
    expect(refusal(text)?.code ?? 'none').toBe(code)
  })
}

test('what is not a text is left to the client', () => {
  for (const value of [undefined, null, 1, {}]) expect(refusal(value)).toBeUndefined()
})

test('a long text is read once', () => {
  for (const piece of [' ', '/*', '/**/', '--', '--\n', ';', 'x', '*/', '/* ', 'set_config(', 'set_config(,,']) {
    const started = performance.now()
    refusal(piece.repeat(200_000))
    expect(performance.now() - started).toBeLessThan(1_000)
  }
})

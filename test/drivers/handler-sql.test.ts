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
  for (const piece of [' ', '/*', '/**/', '--', '--\n', ';', 'x', '*/', '/* ']) {
    const started = performance.now()
    refusal(piece.repeat(200_000))
    expect(performance.now() - started).toBeLessThan(1_000)
  }
})

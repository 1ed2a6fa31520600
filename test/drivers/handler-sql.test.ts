import { expect, test } from 'vitest'
import { refusal } from '../../src/postgres/drivers/handler-sql.js'
import { nextToken } from '../../src/postgres/drivers/sql-text.js'

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
    "update pg_settings set setting = 'x' where name = 'search_path'",
    'UPDATE pg_catalog.PG_SETTINGS s SET setting = $1',
    'update only (pg_settings) set setting = $1',
    'update "pg_catalog"."pg_settings" set setting = $1',
    'explain analyze update pg_settings set setting = $1',
    'insert into t values (1); update pg_settings set setting = $1',
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
    'select setting from pg_settings where name = $1',
    'update t set x = (select setting from pg_settings limit 1)',
    "update t set x = 'update pg_settings'",
    'update mine.pg_settings set setting = $1',
    'select * from t, pg_settings for update of t',
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
    // Of quadratic time it would be minutes.
    expect(performance.now() - started).toBeLessThan(20_000)
  }
})

test.each<[code: string, text: string]>([
  ['HANDLER_COMMITTED', '/* begin atomic */ select 1; commit'],
  ['HANDLER_COMMITTED', "select 'begin atomic'; commit"],
  ['HANDLER_COMMITTED', 'select 1 as "begin atomic"; commit'],
  ['HANDLER_COMMITTED', 'create function f() returns int begin atomic select case when true then 1 end; end; commit'],
  ['HANDLER_COMMITTED', 'create function f() returns int begin atomic select 1 as case; end; commit'],
  ['HANDLER_COMMITTED', 'select $a$ ; $a$; commit'],
  ['HANDLER_COMMITTED', String.raw`select E'\'; '; commit`],
  ['none', 'create function f() returns int begin atomic select case when true then 1 end; select 2; end'],
  ['none', 'create or replace procedure f() begin/* */atomic select 1; end;'],
  ['none', String.raw`select E'it\'s; commit; '`],
  ['none', 'select a$b$; select $b$ from t'],
  ['none', 'select $x$; commit $x$'],
  ['none', 'commité'],
  ['SESSION_CHANGED', `select "set_config"('a', 'b', false)`],
  ['SESSION_CHANGED', `select pg_catalog . "set_config" ('a', 'b', false)`],
  ['SESSION_CHANGED', String.raw`select U&"set\005fconfig"('a', 'b', false)`],
  ['SESSION_CHANGED', String.raw`select u&"set!005fconfig" uescape '!' ('a', 'b', false)`],
  ['SESSION_CHANGED', String.raw`select U&"\+000070g_advisory_lock"(1)`],
  ['SESSION_CHANGED', `select "pg_advisory_lock"(1)`],
  ['SESSION_CHANGED', `select set_config('a', 'b', is_local => false)`],
  ['SESSION_CHANGED', `select set_config(is_local := false, setting_name := 'a', new_value := 'b')`],
  ['SESSION_CHANGED', `select set_config('a', 'b', E'f')`],
  ['SESSION_CHANGED', `select set_config('a', 'b', $$Fals$$)`],
  ['SESSION_CHANGED', String.raw`update U&"pg\005fsettings" set setting = 'x'`],
  ['none', 'update "PG_SETTINGS" set setting = 1'],
  ['none', `select "SET_CONFIG"('a', 'b', false)`],
  ['none', `select set_config('a', 'b', "false")`],
  ['none', `select set_config('a', 'b', is_local => true)`],
])('%s: %s', (code, text) => {
  expect(refusal(text)?.code ?? 'none').toBe(code)
})

test('comments, white space and quotes around names that need none change no verdict', () => {
  const random = seeded(20_240_101)
  const blanks = [' ', '\n', '\t', '/* begin atomic; */', '/* /* commit */ " */', "-- ' $$ end\n", '/**/', '\r\n']
  const blank = (): string => Array.from({ length: 1 + random(3) }, () => blanks[random(blanks.length)]!).join('')
  for (const [code, list] of Object.entries(texts)) {
    for (const text of list.filter((one) => !one.includes('never closed'))) {
      for (let round = 0; round < 20; round++) {
        const pieces: string[] = [blank()]
        for (let at = 0, token = nextToken(text, 0); token; at = token.end, token = nextToken(text, at)) {
          const raw = text.slice(at, token.end)
          // A name of a function may stand in quotes, in lower case; a key word may not.
          const isFunction = /^(set_config|pg_\w*advisory\w*)$/.test(token.text) && token.kind === 'word'
          pieces.push(isFunction && random(2) === 1 ? `"${token.text}"` : raw, blank())
        }
        const written = pieces.join('')
        expect([written, refusal(written)?.code ?? 'none']).toEqual([written, code])
      }
    }
  }
})

/** A small generator of numbers below `most`, the same every time. */
function seeded(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * most)
  }
}

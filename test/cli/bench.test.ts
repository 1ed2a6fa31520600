/** `oncebox bench` measures, and leaves nothing behind, not even when it is interrupted. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { cli } from './fixture.js'
import { openProject } from './project.js'

async function schemas(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const found = await client.query(`select from pg_namespace where nspname like 'oncebox%'`).finally(() => client.end())
  return found.rowCount ?? 0
}

test('it says what it will do, prints figures, and drops its schema, also when it is interrupted', async () => {
  await using database = await scratchDatabase('bench')
  await using project = await openProject({})
  const env = { DATABASE_URL: database.url }
  const bench = project.oncebox(['bench', '--seconds', '1', '--json'], env)
  expect(await bench.exited, bench.stderr).toBe(0)
  const figures = JSON.parse(bench.stdout) as Record<string, number>
  for (const name of ['commitMsMedian', 'commitMsP99', 'transactionsPerSecond', 'groupPerSecond', 'singlePerSecond']) {
    expect(figures[name], name).toBeGreaterThan(0)
  }
  expect(bench.stderr).toMatch(/in the schema oncebox_bench_\w+, which is dropped at the end\n/)
  expect(await schemas(database.url)).toBe(0)

  const interrupted = project.oncebox(['bench', '--seconds', '600'], env)
  await interrupted.saw('in the schema')
  interrupted.kill('SIGINT')
  expect(await interrupted.exited).toBe(130)
  expect(await schemas(database.url)).toBe(0)
})

test('it drops its schema also when it is interrupted while the database is slow', async () => {
  await using database = await scratchDatabase('bench_slow')
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  // The database goes first.
  client.on('error', () => undefined)
  onTestFinished(() => client.end())
  // Each row that it writes takes its time: 500 of them far longer than a command has after Ctrl-C.
  await client.query(`
    create function public.wait() returns trigger language plpgsql as $$ begin perform pg_sleep(0.1); return new; end $$;
    create function public.slow_down() returns event_trigger language plpgsql as $$ declare made record; begin
      for made in select * from pg_event_trigger_ddl_commands() where object_identity like '%.probe' and object_type = 'table' loop
        execute format('create trigger wait before insert on %s for each row execute function public.wait()', made.object_identity);
      end loop; end $$;
    create event trigger slow_down on ddl_command_end when tag in ('CREATE TABLE') execute function public.slow_down()`)
  const interrupt = new AbortController()
  const argv = ['bench', '--seconds', '1']
  const bench = cli(argv, { env: { DATABASE_URL: database.url }, signal: interrupt.signal })
  await waitUntil(
    async () => {
      const { rows } = await client.query<{ name: string }>(
        `select n.nspname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname like 'oncebox%' and c.relname = 'message'`,
      )
      return rows.length > 0 && (await client.query(`select from ${rows[0]!.name}.message limit 1`)).rowCount === 1
    },
    { what: 'messages to be handled', timeoutMs: 60_000 },
  )
  interrupt.abort()
  expect(await bench).toMatchObject({ code: 130, stdout: '' })
  expect(await schemas(database.url)).toBe(0)
})

/** `oncebox bench` measures, and leaves nothing behind, not even when it is interrupted. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { scratchDatabase } from '../support/postgres.js'
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

/** What the figures were measured on. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os'
import { promisify } from 'node:util'
import pg from 'pg'

const run = promisify(execFile)
const root = new URL('..', import.meta.url)

export async function describeMachine({ url, pid }) {
  const require = createRequire(import.meta.url)
  const { version: oncebox } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  const processors = cpus()
  return {
    at: new Date().toISOString(),
    commit: await commit(),
    machine: {
      cpu: processors[0]?.model.trim(),
      cores: processors.length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
      os: `${platform()} ${/^\d+\.\d+/.exec(release())?.[0]} ${arch()}`,
      load: Number(loadavg()[0].toFixed(2)),
    },
    versions: { oncebox, node: process.version, pg: require('pg/package.json').version },
    postgres: { ownServer: pid !== undefined, ...(await settings(url)) },
  }
}

async function settings(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select name, setting from pg_settings where name in
        ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size')`,
    )
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  } finally {
    await client.end()
  }
}

/** The commit, marked if the library differs from it. */
async function commit() {
  const git = async (...args) => (await run('git', args, { cwd: root })).stdout.trim()
  try {
    const changed = await git('status', '--porcelain', '--', 'src')
    return `${await git('rev-parse', '--short', 'HEAD')}${changed ? ' with changes' : ''}`
  } catch {
    return 'unknown'
  }
}

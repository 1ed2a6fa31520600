/**
 * Copies the data of a running server of this machine, for a standby of it, by the server's own functions: the binaries that
 * npm has come without pg_basebackup.
 */
import { execFile } from 'node:child_process'
import { chown, mkdir, readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'

const run = promisify(execFile)

/** What belongs to the server that runs, and its log, which is copied last. */
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_stat_tmp', 'pg_replslot'])
const EMPTY = ['pg_stat_tmp', 'pg_replslot']

/** @param {{ uid?: number, gid?: number }} user who owns the copy */
export async function copyForStandby(url, dataDir, user) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select current_setting('data_directory') directory, current_setting('server_version_num')::int version`,
    )
    const [{ directory, version }] = rows
    await mkdir(dataDir, { mode: 0o700 })
    const [begin, end] =
      version < 150_000
        ? [`pg_start_backup('standby', true, false)`, 'pg_stop_backup(false, false)']
        : [`pg_backup_start('standby', true)`, 'pg_backup_stop(false)']
    await client.query(`select ${begin}`)
    const entries = (await readdir(directory)).filter((entry) => !LEFT_OUT.has(entry))
    await copy(directory, entries, dataDir)
    const { rows: ended } = await client.query(`select labelfile from ${end}`)
    await copy(directory, ['pg_wal'], dataDir)
    const files = { backup_label: ended[0].labelfile, 'standby.signal': '' }
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(dataDir, name), text)
    for (const name of EMPTY) await mkdir(path.join(dataDir, name), { mode: 0o700 })
    if (user.uid === undefined) return
    for (const name of ['.', ...EMPTY, ...Object.keys(files)]) await chown(path.join(dataDir, name), user.uid, user.gid)
  } finally {
    await client.end()
  }
}

/** With owners and modes as they are. */
async function copy(from, entries, to) {
  await run('cp', ['-a', ...entries.map((entry) => path.join(from, entry)), to])
}

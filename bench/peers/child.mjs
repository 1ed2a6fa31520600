/** A contender's process and database, from its first message to its last. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { serverUs } from '../cpu.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
export const NODE = `${here}node_modules/.bin/node`
/** Whoever needs longer for a step does not end. */
const STEP_MS = 120_000

export class Child {
  #process
  #admin
  #server
  #database
  #tables

  constructor(server, database) {
    this.#server = server
    this.#database = database
  }

  /** In an empty database, by a new process: nothing is warm. */
  async start({ module, shape }) {
    const url = new URL(this.#server.url)
    await this.#ofServer(`drop database if exists ${this.#database} with (force)`, `create database ${this.#database}`)
    url.pathname = `/${this.#database}`
    this.#admin = new pg.Client({ connectionString: url.href, application_name: 'bench' })
    this.#admin.on('error', () => undefined)
    await this.#admin.connect()
    this.#process = spawn(NODE, ['--expose-gc', `${here}contender.mjs`, module, shape], {
      env: { ...process.env, BENCH_URL: url.href },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    ;({ tables: this.#tables } = await this.ask('open'))
  }

  ask(step, given = {}) {
    return new Promise((resolve, reject) => {
      const child = this.#process
      const end = (settle, value) => {
        clearTimeout(limit)
        child.off('message', heard).off('exit', ended)
        settle(value)
      }
      const heard = ({ answer, error }) => (error ? end(reject, new Error(error)) : end(resolve, answer))
      const ended = (code) => end(reject, new Error(`${step}: its process ended with ${code}`))
      const limit = setTimeout(() => end(reject, new Error(`${step} took more than ${STEP_MS / 1_000} s`)), STEP_MS)
      child.on('message', heard).on('exit', ended)
      child.send({ step, ...given })
    })
  }

  /** A step that counts: its rate, and what each message took of CPU and of the write-ahead log. */
  async measure(step, count, given) {
    const cpu = serverUs(this.#server.pid)
    const wal = await this.#wal()
    const { ms, nodeUs } = await this.ask(step, given)
    const bytes = (await this.#wal()) - wal
    return { rate: (count * 1_000) / ms, node: nodeUs / count, postgres: cpu() / count, wal: bytes / count }
  }

  async settle() {
    await this.#admin.query(`vacuum analyze ${[...this.#tables, 'bench.effect', 'bench.stock'].join(', ')}`)
    // A role without the right to it has checkpoints in the middle of a measurement.
    await this.#admin.query('checkpoint').catch(() => undefined)
  }

  /** Dead rows that it made so far: its sessions tell of them when they end. */
  async deadRows() {
    await this.ask('close')
    const others = `select count(*)::int n from pg_stat_activity where datname = current_database()
      and application_name not in ('bench', 'bench-admin')`
    while ((await this.#admin.query(others)).rows[0].n > 0) await new Promise((resolve) => setTimeout(resolve, 10))
    const { rows } = await this.#admin.query(
      `select coalesce(sum(n_tup_upd + n_tup_del), 0)::int dead from pg_stat_user_tables where schemaname <> 'bench'`,
    )
    await this.ask('open')
    return rows[0].dead
  }

  async stop() {
    this.#process?.kill('SIGKILL')
    await this.#admin?.end().catch(() => undefined)
    await this.#ofServer(`drop database if exists ${this.#database} with (force)`)
  }

  async #wal() {
    const { rows } = await this.#admin.query(`select (pg_current_wal_insert_lsn() - '0/0')::text at`)
    return Number(rows[0].at)
  }

  async #ofServer(...statements) {
    const client = new pg.Client({ connectionString: this.#server.url })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
}

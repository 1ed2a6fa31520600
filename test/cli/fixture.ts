/** The command line under test: in this process with streams of the test's own, and a box that has something of everything. */
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { createBox, type Message } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { run } from '../../src/cli/run.js'
import type { Io } from '../../src/cli/io.js'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Its streams are terminals of so many columns. */
  readonly columns?: number
  readonly stdin?: string
  readonly cwd?: string
  readonly signal?: AbortSignal
  /** Told what is written, as it is. */
  readonly onOutput?: (text: string) => void
}

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Stdout, line by line, as JSON. */
  readonly documents: Record<string, unknown>[]
}

/** `oncebox …argv`, without a process. */
export async function cli(argv: readonly string[], options: CliOptions = {}): Promise<Ran> {
  const { env = {}, columns, cwd = ROOT, signal = new AbortController().signal, onOutput } = options
  const written = { stdout: '', stderr: '' }
  const stdin = new PassThrough()
  if (options.stdin !== undefined) stdin.end(options.stdin)
  const stream = (name: 'stdout' | 'stderr') =>
    Object.assign(
      new PassThrough().on('data', (data: Buffer) => {
        written[name] += data.toString()
        onOutput?.(data.toString())
      }),
      { isTTY: columns !== undefined, columns },
    )
  const io: Io = {
    stdin: Object.assign(stdin, { isTTY: columns !== undefined }),
    ...{ stdout: stream('stdout'), stderr: stream('stderr'), env, cwd, signal },
  }
  const code = await run(argv, io)
  await new Promise(setImmediate)
  const { stdout, stderr } = written
  return {
    ...{ code, stdout, stderr },
    get documents() {
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    },
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** In the payload and the headers of every message: nothing may print it unasked. */
export const CANARY = 'canary-7f3a'

/**
 * In schema `schema`: consumer `pay` with three handled, five dead, one pending and one whose effect is unknown; `audit` with
 * as many handled; two without an id, and events of which sink `events` refuses two. `id` makes ids.
 */
export async function seed(url: string, schema: string, id = (name: string): string => name): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  const box = createBox({ db: fromPg(pool), schema, logger: SILENT, source: 'shop' })
  const fails = (kind: string): never => {
    throw new Error(`no luck with ${id(kind)}`)
  }
  box.consumer(
    'pay',
    {
      [id('ok')]: () => ({ paid: true }),
      [id('bad')]: () => fails('bad'),
      [id('call')]: (_message: unknown, { effect }: { effect: CallableFunction }) =>
        effect('charge', () => fails('call'), { onUnknown: 'park' }) as Promise<unknown>,
    },
    { retry: { attempts: 1 } },
  )
  box.to({
    name: id('events'),
    publish: async (batch: readonly Message[]) =>
      batch.map(({ id: event }) =>
        event.endsWith('refused') ? { error: new Error(`refuses ${event}`), retry: false } : undefined,
      ),
    close: async () => {},
  })
  try {
    await box.migrate()
    const message = (name: string, kind: string) => ({
      ...{ id: name, type: id(kind), key: id('key'), data: { secret: CANARY }, headers: { token: CANARY } },
    })
    await box.receive([1, 2, 3].map((n) => message(id(`ok-${n}`), 'ok')))
    await box.receive([1, 2, 3, 4, 5].map((n) => message(id(`bad-${n}`), 'bad')))
    await box.receive(message(id('call-1'), 'call'))
    await box.receive([1, 2].map((n) => ({ ...message('', 'ok'), id: undefined, data: { n } })))
    const client = await pool.connect()
    await client.query('begin')
    for (const name of ['e1', 'e2-refused', 'e3-refused']) {
      await box.send(client, id('sent'), { secret: CANARY }, { id: id(name).replace(/(-refused)?(.*)$/s, '$2$1') })
    }
    await client.query('commit')
    client.release()
    await box.drain()
    await box.receive(message(id('waiting'), 'ok'))
  } finally {
    await box.stop()
    await pool.end()
  }
}

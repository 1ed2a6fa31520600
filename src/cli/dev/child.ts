/** The process that runs the user's box for `oncebox dev`: it may crash, and is replaced when a file changes. */
import type { Box } from '../../box.js'
import { INBOX, type InboxTarget } from '../../brokers/handover.js'
import type { MessageMap } from '../../message.js'
import type { Driver } from '../../postgres/driver.js'
import { listenTo } from '../../tap.js'
import { boxOf, broken, requireConfig } from '../config.js'
import { explain } from '../explain.js'
import { failed } from '../exit.js'
import { whatRuns } from '../commands/work.js'
import { masked } from '../secrets.js'
import type { ChildOptions, FromChild, ToChild } from './protocol.js'

type AnyBox = Box<MessageMap, unknown, unknown> & { readonly [INBOX]?: InboxTarget }

const STOP_MS = 5_000
const options = JSON.parse(process.argv[2] ?? '{}') as ChildOptions
const running: { box?: AnyBox } = {}

const tell = (what: FromChild): void => {
  if (process.connected) process.send?.(what)
}
const end = async (code: number): Promise<void> => {
  await running.box?.stop({ timeoutMs: STOP_MS }).catch(() => undefined)
  process.exit(code)
}

// Ctrl-C reaches every process of the terminal; the one that looks after us says when to stop.
process.on('SIGINT', () => undefined)
process.on('disconnect', () => void end(0))

listenTo((happening) => {
  const { data, ...rest } = happening
  tell({ kind: 'happened', happening: options.data ? { ...rest, data } : rest })
})

try {
  const loaded = await requireConfig(process.cwd(), options.config)
  const opened = (running.box = (await boxOf(loaded)) as unknown as AnyBox)
  await checkDatabase(opened)
  await opened.migrate()
  await opened.start()
  const { example } = loaded.config
  const receive = async (): Promise<void> => {
    try {
      if (example) await opened.receive(example())
    } catch (error) {
      const { message } = broken(loaded.file, error)
      tell({
        kind: 'refused',
        message: masked(message.replace('cannot be loaded', 'the example was refused')),
        advice: undefined,
      })
    }
  }
  process.on('message', (said: ToChild) => void (said.kind === 'stop' ? end(0) : receive()))
  tell({ kind: 'ready', runs: whatRuns(opened, undefined), example: example !== undefined })
  if (options.fresh) await receive()
} catch (error) {
  const { message, advice } = explain(error)
  tell({ kind: 'refused', message, advice })
  await end(1)
}

/** Else a config with a URL of its own would have its production database migrated, and worked on. */
async function checkDatabase(opened: AnyBox): Promise<void> {
  if (options.token === undefined) return
  const driver = opened[INBOX]!.driver as Driver<unknown, unknown>
  const [row] = await driver.query(`select pg_catalog.current_setting('oncebox.dev', true) as token`, [])
  if (row?.['token'] === options.token) return
  throw failed(
    'the box of your config is not on the database of oncebox dev, which has set DATABASE_URL; nothing was changed',
    'take the connection from process.env.DATABASE_URL, or give that database on purpose: oncebox dev --url <url>',
  )
}

/** Connects a command: finds the database and a client, looks at the schema, and makes a box. */
import { createBox, type Box } from '../../box.js'
import { INBOX, type InboxTarget } from '../../brokers/handover.js'
import { OnceboxError } from '../../errors.js'
import type { Logger } from '../../handler.js'
import type { MessageMap } from '../../message.js'
import { bindDatabase, type Database } from '../../postgres/database.js'
import type { Driver } from '../../postgres/driver.js'
import { checkVersion } from '../../postgres/migrate.js'
import type { ConnectNeeds } from '../command.js'
import { boxOf, findConfig, type Config } from '../config.js'
import { failed } from '../exit.js'
import { explain } from '../explain.js'
import type { Io } from '../io.js'
import { openClient } from './client.js'
import { findPlace, flagsOf, type ConnectionOptions, type Place } from './place.js'
import { schemaOf } from './schema.js'
import { embeddedNote, hintAtUrl } from './unsaid.js'
import { cannotConnect, describePlace } from './problem.js'

export type AnyBox = Box<MessageMap, unknown>

export interface Connection {
  readonly box: AnyBox
  readonly db: Database
  readonly schema: string
  /** Where it is, for people, without a password. */
  readonly where: string
  close(): Promise<void>
}

export interface ConnectDeps {
  readonly io: Io
  readonly options: ConnectionOptions
  readonly logger: Logger
  /** For people, on stderr. */
  note(text: string): void
  config(): Promise<Config | undefined>
}

export async function connect(
  deps: ConnectDeps,
  { schema: wanted = 'current', ownBox }: ConnectNeeds = {},
): Promise<Connection> {
  const { io, options } = deps
  const place = await findPlace({ io, options, ownBox, config: () => deps.config() })
  const where = describePlace(place, io.env)
  if ('embedded' in place) deps.note(embeddedNote(place.url))
  const opened = 'box' in place ? await boxOfConfig(place, deps) : await boxOnClient(deps, place)
  const db = bindDatabase(opened.driver, opened.schema)
  try {
    await db.driver.query('select 1', []).catch(async (error: unknown) => {
      const problem = cannotConnect(error, where)
      throw 'box' in place ? await hintAtUrl(problem, io) : problem
    })
    if (wanted === 'current') {
      await checkVersion(db).catch((error: unknown) => {
        // Which role may depends on the command.
        throw error instanceof OnceboxError && error.code === 'RIGHTS_MISSING'
          ? error
          : explain(error, flagsOf(options))
      })
    }
  } catch (error) {
    await opened.close()
    throw error
  }
  return { box: opened.box, db, schema: opened.schema, where, close: () => opened.close() }
}

interface Opened {
  readonly box: AnyBox
  readonly driver: Driver<unknown, unknown>
  readonly schema: string
  close(): Promise<void>
}

async function boxOnClient(deps: ConnectDeps, place: Extract<Place, { from: string; url: unknown }>): Promise<Opened> {
  const { io, options, logger } = deps
  const schema = options.schema ?? (await deps.config())?.schema ?? 'oncebox'
  const { env, cwd } = io
  const client = await openClient({ cwd, env, url: place.url, connectTimeoutMs: options.connectTimeout })
  const box: AnyBox = createBox({ db: client.driver, schema, logger, telemetry: false })
  return { box, driver: client.driver, schema, close: () => client.close() }
}

/** Its client is the user's, and stays open until the process ends. */
async function boxOfConfig(
  { box: given }: Extract<Place, { box: unknown }>,
  { io, options }: ConnectDeps,
): Promise<Opened> {
  const file = findConfig(io.cwd, options.config) ?? 'the config'
  const made = await boxOf({ file, config: { box: given } }).catch(async (error: unknown) => {
    throw await hintAtUrl(explain(error), io)
  })
  const box = made as unknown as AnyBox & { [INBOX]?: InboxTarget }
  const target = box[INBOX]
  if (target === undefined) throw failed(`${file}: box is not what createBox() answers`)
  const schema = schemaOf(target)
  if (options.schema !== undefined && options.schema !== schema) {
    throw failed(`the box of the config has schema ${schema}`, 'leave --schema out, or give the database with --url')
  }
  return { box, driver: target.driver as Driver<unknown, unknown>, schema, close: async () => undefined }
}

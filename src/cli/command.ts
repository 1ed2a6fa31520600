/**
 * A command, said once: `--help`, the page of the docs, completion and the check of what was typed all come from here.
 *
 *     export const retryDead = command({
 *       noun: 'dead', verb: 'retry',
 *       summary: 'Make dead messages pending again.',
 *       example: "oncebox dead retry --consumer billing --reason 'provider is back'",
 *       options: { consumer: text('Of this consumer.', 'name') },
 *       arguments: { ids: restArguments('Ids of messages.') },
 *       connects: true,
 *       output: object({ count: integer() }),
 *       async run({ options, args, out, connect }) {
 *         const { box } = await connect()
 *         …
 *       },
 *     })
 *
 * and `registry.ts` has a line for it. The module of a command imports what it works with inside `run`, so that `--help` stays
 * quick. What `run` answers is the exit code, 0 if nothing; what it throws is explained by `explain.ts`.
 */
import type { Config } from './config.js'
import type { Connection } from './connect/connect.js'
import type { ExitCode } from './exit.js'
import type { Io } from './io.js'
import { dashed, duration, flag, text, type Argument, type Option, type OptionsOf } from './option.js'
import type { Output } from './output/output.js'
import type { Shape } from './shape.js'

export type Options = Readonly<Record<string, Option<unknown>>>
export type Arguments = Readonly<Record<string, Argument<unknown>>>

export interface Declaration<O extends Options, A extends Arguments> {
  /** `oncebox <noun> <verb>`; some have no verb. */
  readonly noun: string
  readonly verb?: string
  /** One sentence. */
  readonly summary: string
  /** What else is to be known, a paragraph each. */
  readonly details?: readonly string[]
  /** To be copied, with what it needs. */
  readonly example: string
  readonly options?: O
  readonly arguments?: A
  /** It works on a database: it takes the options of a connection. */
  readonly connects?: boolean
  /** What `--json` prints, line by line. Without it there is no `--json`. */
  readonly output?: Shape
  /** It prints text of strangers, and takes `--raw`. */
  readonly raw?: boolean
  /** Ctrl-C is how it ends: it takes its time for that, and the exit code is its own. */
  readonly endless?: boolean
  /** Exit codes besides 0, 1, 2, 130, and 4 of those that connect. */
  readonly exits?: readonly ExitCode[]
  run(context: Context<OptionsOf<O>, OptionsOf<A>>): Promise<ExitCode | void>
}

export interface Context<O = object, A = object> {
  readonly options: O
  readonly args: A
  readonly io: Io
  readonly out: Output
  /** Aborted by Ctrl-C. A command that goes on for long looks at it, stops, and says how far it got. */
  readonly signal: AbortSignal
  /** The database, and a box on it. It is closed when the command ends. */
  connect(needs?: ConnectNeeds): Promise<Connection>
  /** What `--config` names, else the `oncebox.config.*` of the directory; undefined without one. */
  config(): Promise<Config | undefined>
  /** All there are. */
  commands(): Promise<readonly Command[]>
}

/** `not-beside-dev`: unless the environment names no database, and that of `oncebox dev` runs here. */
export type OwnBox = true | 'not-beside-dev'

export interface ConnectNeeds {
  /** Default `current`: a schema that is missing, older or newer ends the command with advice. */
  readonly schema?: 'current' | 'any'
  /** Rather the config's own box, with its hooks, where nobody has named a database in an argument. */
  readonly ownBox?: OwnBox
}

export interface Command {
  readonly noun: string
  readonly verb: string | undefined
  /** `dead retry` */
  readonly name: string
  readonly summary: string
  readonly details: readonly string[]
  readonly example: string
  readonly options: Options
  readonly arguments: Arguments
  readonly connects: boolean
  readonly output: Shape | undefined
  readonly raw: boolean
  readonly endless: boolean
  readonly exits: readonly ExitCode[]
  run(context: Context): Promise<ExitCode | void>
}

export function command<const O extends Options, const A extends Arguments>(declaration: Declaration<O, A>): Command {
  const { noun, verb, options, connects = false, output, raw = false, endless = false, exits = [] } = declaration
  return {
    ...declaration,
    ...{ verb, connects, output, raw, endless, exits },
    name: verb === undefined ? noun : `${noun} ${verb}`,
    details: declaration.details ?? [],
    options: options ?? {},
    arguments: declaration.arguments ?? {},
    run: (context) => declaration.run(context as never),
  }
}

/** Options of every command that connects. `connect/` says what becomes of them. */
const CONNECTION = {
  url: text('The database: postgres://user@host:5432/name, without a password.', 'url'),
  urlFile: text('A file with the URL, which may have a password; - for stdin.', 'path'),
  schema: text('The schema of the box (default: that of the config, else oncebox).', 'name'),
  config: text('The config file (default: oncebox.config.ts, .mts, .js, .mjs or .cjs here).', 'path'),
  connectTimeout: duration('How long to wait for the database.', 10_000, '10s'),
}

export const HELP = { help: flag('Print this.') }
const JSON_OUTPUT = { json: flag('Print JSON, one document per line.') }
const RAW_OUTPUT = { raw: flag('Print control characters and text directions as they are, not escaped.') }

/** All that can be typed, the command's own first. */
export function allOptions(of: Command): { own: Options; output: Options; connection: Options } {
  return {
    own: of.options,
    output: { ...(of.output && JSON_OUTPUT), ...(of.raw && RAW_OUTPUT), ...HELP },
    connection: of.connects ? CONNECTION : {},
  }
}

export { dashed }

/**
 * `oncebox.config.ts`: how the command line finds your box. This module is all that such a file has to import, and it
 * imports nothing.
 */
import type { Box } from './box.js'
import type { Incoming, MessageMap } from './message.js'

/** What the command line uses of a box, whatever its messages and its client are. */
export type ConfiguredBox = Pick<Box<MessageMap, never>, 'migrate' | 'start' | 'stop' | 'drain' | 'health'>

export interface Config {
  /** The box, or what makes it: it is asked for by the commands that need your handlers, and by no other. */
  readonly box?: ConfiguredBox | (() => ConfiguredBox | Promise<ConfiguredBox>) | undefined
  /** How commands that need no handlers reach the database. Default: DATABASE_URL, else libpq's variables. */
  readonly url?: string | (() => string | Promise<string>) | undefined
  /** The PostgreSQL schema of the box. Default: 'oncebox'. */
  readonly schema?: string | undefined
  /** A message to try the box with: `oncebox dev` receives it when its database is new, and when you press m. */
  readonly example?: (() => Incoming) | undefined
}

/** Answers what it is given, checked by the compiler. */
export function defineConfig(config: Config): Config {
  return config
}

/** Every command, in the order of `--help`. A module is loaded when its command is asked for. */
import type { Command } from './command.js'

export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import('./commands/init.js')).init,
  dev: async () => (await import('./commands/dev.js')).dev,
  work: async () => (await import('./commands/work.js')).work,
  bench: async () => (await import('./commands/bench.js')).bench,
  'migrate up': async () => (await import('./commands/migrate.js')).migrateUp,
}

export function allCommands(): Promise<Command[]> {
  return Promise.all(Object.values(COMMANDS).map((load) => load()))
}

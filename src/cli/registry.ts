/** Every command, in the order of `--help`. A module is loaded when its command is asked for. */
import type { Command } from './command.js'

export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import('./commands/init.js')).init,
  dev: async () => (await import('./commands/dev.js')).dev,
  work: async () => (await import('./commands/work.js')).work,
  dashboard: async () => (await import('./commands/dashboard.js')).dashboard,
  bench: async () => (await import('./commands/bench.js')).bench,
  'migrate up': async () => (await import('./commands/migrate.js')).migrateUp,
  'migrate status': async () => (await import('./commands/migrate.js')).migrateStatus,
  'migrate sql': async () => (await import('./commands/migrate.js')).migrateSql,
  status: async () => (await import('./commands/status.js')).status,
  doctor: async () => (await import('./commands/doctor.js')).doctor,
  'messages ls': async () => (await import('./commands/messages.js')).messagesLs,
  'messages replay': async () => (await import('./commands/messages.js')).messagesReplay,
  'messages show': async () => (await import('./commands/messages.js')).messagesShow,
  'dead ls': async () => (await import('./commands/dead.js')).deadLs,
  'dead retry': async () => (await import('./commands/dead.js')).deadRetry,
  'dead discard': async () => (await import('./commands/dead.js')).deadDiscard,
  'quarantine ls': async () => (await import('./commands/quarantine.js')).quarantineLs,
  'quarantine release': async () => (await import('./commands/quarantine.js')).quarantineRelease,
  'quarantine discard': async () => (await import('./commands/quarantine.js')).quarantineDiscard,
  'outbox ls': async () => (await import('./commands/outbox.js')).outboxLs,
  'outbox retry': async () => (await import('./commands/outbox.js')).outboxRetry,
  'outbox discard': async () => (await import('./commands/outbox.js')).outboxDiscard,
  'consumer ls': async () => (await import('./commands/consumer.js')).consumerLs,
  'consumer pause': async () => (await import('./commands/consumer.js')).consumerPause,
  'consumer resume': async () => (await import('./commands/consumer.js')).consumerResume,
  'consumer rm': async () => (await import('./commands/consumer.js')).consumerRm,
  'sink ls': async () => (await import('./commands/sink.js')).sinkLs,
  'sink rm': async () => (await import('./commands/sink.js')).sinkRm,
  'effects answer': async () => (await import('./commands/effects.js')).effectsAnswer,
  'audit ls': async () => (await import('./commands/audit.js')).auditLs,
  import: async () => (await import('./commands/import.js')).importMarks,
  prune: async () => (await import('./commands/prune.js')).prune,
  completion: async () => (await import('./commands/completion.js')).completion,
}

export function allCommands(): Promise<Command[]> {
  return Promise.all(Object.values(COMMANDS).map((load) => load()))
}

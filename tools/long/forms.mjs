/**
 * The long forms of slow suites: `npm test` runs each with smaller figures. `variables` are what the files read, `files` what
 * vitest is given.
 */
export const FORMS = [
  { name: 'kills', about: '20 000 messages, a worker killed every second', variables: { ONCEBOX_CRASH_MESSAGES: '20000' }, files: ['test/crash/kills.test.ts'] },
  { name: 'copies', about: '10 000 messages whose copies arrive at the same moment, in four processes', variables: { ONCEBOX_CRASH_ROUNDS: '200', ONCEBOX_CRASH_COPIES: '10000' }, files: ['test/crash/copies.test.ts'] },
  { name: 'copies-inline', about: '10 000 messages whose copies arrive at the same moment, in one process', variables: { ONCEBOX_COPIES: '10000' }, files: ['test/inbox/copies.test.ts'] },
  { name: 'checker', about: 'random schedules of everything at once, for ten minutes', variables: { ONCEBOX_CHECKER_MS: '600000' }, files: ['test/crash/checker.test.ts'] },
  { name: 'order', about: 'order per key, in unkind conditions', variables: { ONCEBOX_UNKIND: '2000' }, files: ['test/inbox/order-unkind.test.ts'] },
  { name: 'relays', about: 'relays killed 50 times', variables: { OUTBOX_KILLS: '50' }, files: ['test/outbox/crash.test.ts'] },
  { name: 'sinks', about: 'a sink added under 300 000 events, processes killed 100 times', variables: { ADDED_EVENTS: '300000', ADDED_KILLS: '100' }, files: ['test/outbox/added-crash.test.ts'] },
  { name: 'chain', about: '10 000 messages through three boxes, processes killed 20 times', variables: { CHAIN_MESSAGES: '10000', CHAIN_KILLS: '20' }, files: ['test/link/chain.test.ts'] },
  { name: 'effects', about: '100 kills between a call and its record', variables: { ONCEBOX_EFFECT_KILLS: '100' }, files: ['test/effects/kills.test.ts'] },
  { name: 'cuts', about: 'brokers and the database cut off over and over, with 8 000 messages', variables: { ONCEBOX_CUTS: '8000,60,50,2000' }, files: ['test/brokers/rabbitmq/faults.test.ts', 'test/brokers/kafka/faults.test.ts', 'test/brokers/sqs/faults.test.ts', 'test/brokers/nats/faults.test.ts', 'test/brokers/redis/faults.test.ts'] },
  { name: 'readers', about: 'hostile messages read by every adapter', variables: { ONCEBOX_FUZZ: '10000' }, files: ['test/brokers/readers.test.ts'] },
  { name: 'webhooks', about: '200 slow senders at once', variables: { ONCEBOX_ATTACK: '200' }, files: ['test/webhook/intake.test.ts'] },
  { name: 'clients', about: '10 000 messages and 200 cut COMMITs for each database client', variables: { ONCEBOX_CLIENTS: 'all', ONCEBOX_CLIENT_MESSAGES: '10000' }, files: ['test/clients'] },
  { name: 'toolchains', about: 'every toolchain and every TypeScript', variables: { ONCEBOX_TOOLCHAINS: 'all' }, files: ['test/toolchains'] },
  { name: 'frameworks', about: 'Next.js built and run; every version of Nest', variables: { ONCEBOX_FRAMEWORKS: 'all', ONCEBOX_NEST_MATRIX: 'all' }, files: ['test/http/next.test.ts', 'test/nest/projects.test.ts'] },
  { name: 'elsewhere', about: 'the command line by pnpm, yarn and bun, on newer Node.js, completed by zsh and fish', variables: { ONCEBOX_ELSEWHERE: 'all' }, files: ['test/cli/elsewhere.test.ts'] },
  { name: 'init', about: 'a project of `oncebox init` with every client', variables: { ONCEBOX_INIT_CLIENTS: 'all' }, files: ['test/cli/init.test.ts'] },
] // prettier-ignore

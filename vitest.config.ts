import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (file: string) => fileURLToPath(new URL(`./src/${file}`, import.meta.url))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^oncebox$/, replacement: source('index.ts') },
      { find: /^oncebox\/pg$/, replacement: source('postgres/drivers/pg.ts') },
      { find: /^oncebox\/postgres$/, replacement: source('postgres/drivers/postgres.ts') },
      { find: /^oncebox\/pglite$/, replacement: source('postgres/drivers/pglite.ts') },
      { find: /^oncebox\/http$/, replacement: source('http/index.ts') },
      { find: /^oncebox\/idempotency$/, replacement: source('idempotency/index.ts') },
      { find: /^oncebox\/link$/, replacement: source('brokers/link/index.ts') },
      { find: /^oncebox\/webhook$/, replacement: source('brokers/webhook/index.ts') },
      { find: /^oncebox\/rabbitmq$/, replacement: source('brokers/rabbitmq/index.ts') },
      { find: /^oncebox\/sqs$/, replacement: source('brokers/sqs/index.ts') },
      { find: /^oncebox\/nats$/, replacement: source('brokers/nats/index.ts') },
      { find: /^oncebox\/redis$/, replacement: source('brokers/redis/index.ts') },
      { find: /^oncebox\/kafka$/, replacement: source('brokers/kafka/index.ts') },
      { find: /^oncebox\/testing$/, replacement: source('testing/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    // Faults are injected in real time: on a busy machine a lease of a second may run out for want of a processor.
    retry: process.env['CI'] ? 2 : 0,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    typecheck: {
      enabled: true,
      include: ['test/types/**/*.test-d.ts'],
      tsconfig: 'tsconfig.json',
      // `npm run check` compiles everything and reports those; here they would be reported a second time.
      ignoreSourceErrors: true,
    },
    reporters: ['default', ['json', { outputFile: 'node_modules/.cache/vitest/report.json' }]],
  },
})

import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.js'
import manifest from './package.json' with { type: 'json' }

/** Tests import the package by its own name, and get its source. */
function alias(key: string, value: string | { import: { default: string } }) {
  const file = typeof value === 'string' ? value : value.import.default
  const [, module] = /^\.\/dist\/(.*)\.js$/.exec(file) ?? []
  if (module === undefined) return []
  const replacement = fileURLToPath(new URL(`./src/${module}.ts`, import.meta.url))
  return [{ find: new RegExp(`^oncebox${key.slice(1)}$`), replacement }]
}

export default defineConfig({
  resolve: {
    alias: [
      ...Object.entries(manifest.exports).flatMap(([key, value]) => alias(key, value)),
      // The interface is built, wherever its server comes from.
      {
        find: /^\.(?:\/|.*\/dashboard\/)location\.js$/,
        replacement: fileURLToPath(new URL('./test/support/location.ts', import.meta.url)),
      },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    // They wait for servers and clocks more than they compute.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
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

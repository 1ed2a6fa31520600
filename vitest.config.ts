import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import manifest from './package.json' with { type: 'json' }

/** Tests import the package by its own name: what is exported from dist/ is taken from src/. */
const alias = Object.entries(manifest.exports)
  .filter(([, file]) => file.startsWith('./dist/'))
  .map(([name, file]) => ({
    find: new RegExp(`^oncebox${name.slice(1)}$`),
    replacement: fileURLToPath(new URL(file.replace('./dist/', './src/').replace(/js$/, 'ts'), import.meta.url)),
  }))

export default defineConfig({
  resolve: { alias },
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

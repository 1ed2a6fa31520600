/** The program of docs/tracing.md runs as it stands, and prints what the page says. */
import { context, propagation, trace } from '@opentelemetry/api'
import { afterEach, expect, test, vi } from 'vitest'
import * as oncebox from 'oncebox'
import * as driver from 'oncebox/pg'
import { recipesOf, runRecipe } from '../docs/recipe.js'
import { scratchDatabase } from '../support/postgres.js'

afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
  trace.disable()
  context.disable()
  propagation.disable()
})

test('the hello world prints the spans that the page shows', async () => {
  await using database = await scratchDatabase('tracing_hello')
  vi.stubEnv('DATABASE_URL', database.url)
  const printed: string[] = []
  vi.spyOn(console, 'log').mockImplementation((...words: unknown[]) => void printed.push(words.join(' ')))
  const page = recipesOf('docs/tracing.md')
  await using _ = await runRecipe(page.get('hello.ts')!, { modules: { oncebox, 'oncebox/pg': driver } })
  expect(`${printed.join('\n')}\n`).toBe(page.get('output'))
})

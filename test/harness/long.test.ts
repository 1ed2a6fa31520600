/**
 * The long forms are found by name in tools/long: a file that was moved, or a variable that nobody reads, would run the short
 * one.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { FORMS } from '../../tools/long/forms.mjs'

const ROOT = path.resolve(import.meta.dirname, '../..')

function textsBelow(place: string): string[] {
  if (statSync(place).isDirectory()) return readdirSync(place).flatMap((name) => textsBelow(path.join(place, name)))
  return /\.(ts|mjs)$/.test(place) ? [readFileSync(place, 'utf8')] : []
}

test.for(FORMS)('$name: its files are there, and read the variables that make it long', ({ files, variables }) => {
  for (const file of files) expect(statSync(path.join(ROOT, file))).toBeTruthy()
  // What a file of tests shares with others lies beside it, or one up.
  const texts = files.flatMap((file) => textsBelow(path.join(ROOT, 'test', file.split('/')[1]!))).join('\n')
  for (const variable of Object.keys(variables)) expect(texts).toContain(`process.env['${variable}']`)
})

/** Every statement of the core, by name. */
import { readdir } from 'node:fs/promises'

const DIRECTORY = new URL('../../src/postgres/sql/', import.meta.url)

export async function statements(): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const file of (await readdir(DIRECTORY)).filter((name) => name.endsWith('.ts'))) {
    const exported = (await import(new URL(file, DIRECTORY).href)) as Record<string, unknown>
    for (const [name, value] of Object.entries(exported)) collect(found, `${file} ${name}`, value)
  }
  return found
}

/** The others are parts of statements, and functions that put them together. */
const WHOLE = /^\s*(with|select|insert|update|delete)\b/i

function collect(found: Map<string, string>, name: string, value: unknown): void {
  if (typeof value === 'string' && WHOLE.test(value)) found.set(name, value)
  if (typeof value !== 'object' || value === null) return
  for (const [part, inner] of Object.entries(value)) collect(found, `${name}.${part}`, inner)
}

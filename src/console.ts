/** The logger of a box that was given none: warnings and errors on the console, a line for each. */
import { escape } from './escape.js'
import type { Logger } from './handler.js'

/* eslint-disable no-console -- what it is for */
export const CONSOLE: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (about, text) => console.warn(`oncebox: ${lineOf(about, text)}`),
  error: (about, text) => console.error(`oncebox: ${lineOf(about, text)}`),
}

/** `message is dead (id m-1, consumer billing, attempt 10)`, escaped: most lines end on a terminal, and senders choose ids. */
export function lineOf(about: object, text = ''): string {
  const facts = Object.entries(about).filter(([, value]) => value !== undefined)
  const told = facts.map(([name, value]) => `${name} ${show(value)}`).join(', ')
  return escape(`${text}${told && ` (${told})`}`)
}

function show(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value))
  if (typeof value === 'string' && /^[^\s"(),]+$/.test(value)) return value
  try {
    return JSON.stringify(value) ?? typeof value
  } catch {
    // Your handlers log what they like: a BigInt, or what contains itself.
    return String(value)
  }
}

/** A message with everything that is known of it. */
import { showTime } from '../output/duration.js'
import type { Output } from '../output/output.js'
import { paint, type Text } from '../output/text.js'
import { entryDocument, stateText, withoutStack, type AnyEntry } from './entry.js'

export interface Wanted {
  readonly stack: boolean
  /** Data, headers, result and detail, too. */
  readonly data: boolean
}

/** Prints them, as JSON or for people. */
export function showWhole(out: Output, entries: readonly AnyEntry[], wanted: Wanted): void {
  for (const [index, entry] of entries.entries()) {
    const shown = { ...wholeDocument(entry, wanted), ...(wanted.data && contentOf(entry)) }
    if (out.json) out.document(shown)
    else {
      if (index > 0) out.line('')
      print(out, entry, shown)
    }
  }
}

function wholeDocument(entry: AnyEntry, { stack }: Wanted): Record<string, unknown> {
  const { error, attempts } = entry
  return {
    ...entryDocument(entry),
    error: error && (stack ? error : withoutStack(error)),
    attempts: attempts?.map((one) => ({ ...one, error: stack ? one.error : withoutStack(one.error) })),
  }
}

function contentOf({ message, result, bytes, detail }: AnyEntry): Record<string, unknown> {
  const { data, headers } = message
  return { detail, data, headers, result, ...(bytes !== undefined && { bytes: Buffer.from(bytes).toString('base64') }) }
}

function print(out: Output, { state, detail, error, attempts = [] }: AnyEntry, shown: Record<string, unknown>): void {
  const { error: _, attempts: __, data, headers, result, ...rest } = shown
  for (const [name, value] of Object.entries(rest)) {
    if (value !== undefined) field(out, name, name === 'state' ? stateText(state) : textOf(value))
  }
  if (detail !== undefined && shown['detail'] === undefined) field(out, 'detail', paint('dim', 'shown with --data'))
  if (error) field(out, 'error', paint('red', `${error.name}: ${error.message}`))
  for (const { attempt, at, error: one } of attempts) {
    field(out, `attempt ${attempt}`, [`${showTime(at)}  `, paint('red', `${one.name}: ${one.message}`)])
  }
  const stack = (shown['error'] as { stack?: string } | undefined)?.stack
  if (stack !== undefined) block(out, 'stack', stack)
  for (const [name, value] of Object.entries({ headers, data, result })) {
    if (value !== undefined) block(out, name, JSON.stringify(value, undefined, 2))
  }
}

function textOf(value: unknown): string {
  return value instanceof Date ? showTime(value) : typeof value === 'string' ? value : JSON.stringify(value)
}

function field(out: Output, name: string, text: Text): void {
  out.line(paint('dim', name.padEnd(14)), ' ', text)
}

/** Its line breaks are kept, everything else that a terminal obeys is not. */
function block(out: Output, name: string, text: string): void {
  out.line(paint('dim', name))
  for (const line of text.split('\n')) out.line('  ', line)
}

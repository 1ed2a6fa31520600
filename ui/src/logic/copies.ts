/** Copies of a message: as JSON, and as a test that delivers it again. Its data stays as it was written. */
import type { Fate } from '../../../src/dashboard/answers/index.js'

/** What is copied: the message as it was received, with its whole body. */
export interface Copied {
  readonly fate: Fate
  /** JSON; undefined if it is not known, or was no JSON. */
  readonly body: string | undefined
  /** Base64, of what could not be decoded. */
  readonly base64?: string | undefined
}

export function asJson({ fate, body, base64 }: Copied): string {
  const { id, source, type, key, subject, time, headers, correlationId, causationId } = fate
  const envelope = { id, source, type, key, subject, time, correlationId, causationId, headers }
  const members = Object.entries(envelope).flatMap(([name, value]) =>
    value === undefined ? [] : `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  )
  // As it was written: to parse and print it would round its numbers.
  if (body !== undefined) members.push(`  "data": ${body}`)
  else if (base64 !== undefined) members.push(`  "base64": ${JSON.stringify(base64)}`)
  return `{\n${members.join(',\n')}\n}\n`
}

export function asTest({ fate, body, base64 }: Copied): string {
  const { id, source, type, key, subject, time, headers, consumer, state, failure, body: payload } = fate
  const payloadOf =
    body === undefined && base64 !== undefined ? `Buffer.from(${literal(base64)}, 'base64')` : literal(body ?? 'null')
  const fields: readonly (readonly [string, string | undefined])[] = [
    ['id', literal(id)],
    ['source', literal(source)],
    ['type', literal(type)],
    ['key', key === undefined ? undefined : literal(key)],
    ['subject', subject === undefined ? undefined : literal(subject)],
    ['time', time === undefined ? undefined : literal(time)],
    ['headers', headersOf(headers)],
    ['body', payloadOf],
  ]
  const lines = fields.flatMap(([name, text]) => (text === undefined ? [] : `    ${name}: ${text},`))
  const notes = [
    ...(payload.redacted ? ['// Some values of the body were redacted before it was copied.'] : []),
    ...(body === undefined && base64 === undefined
      ? ['// The body could not be seen by who copied this: put it in.']
      : []),
    ...(failure ? [`// It is ${state} there: ${comment(words(failure))}`] : []),
  ]
  const name = consumer === '' ? 'the consumer' : consumer
  return `import { expect, test } from 'vitest'
import { createTestBox } from 'oncebox/testing'
import { handlers } from './handlers.js' // those of ${comment(name)}

${notes.map((note) => `${note}\n`).join('')}test(${literal(`${name} handles ${type} ${id}`)}, async () => {
  await using box = await createTestBox()
  box.consumer(${literal(name)}, handlers)

  const [outcome] = await box.deliver({
${lines.join('\n')}
  })
  expect(outcome).toMatchObject({ ack: true })
  await box.waitFor(${literal(id)}, 'handled')
})
`
}

function words({ name, message }: { readonly name: string; readonly message?: string }): string {
  return message === undefined ? name : `${name}: ${message}`
}

/** Of a library: what carries a trace of the run that failed is left out, so that the test begins its own. */
function headersOf(headers: Fate['headers']): string | undefined {
  const kept = Object.entries(headers ?? {}).filter(([name]) => name !== 'traceparent' && name !== 'tracestate')
  if (kept.length === 0) return undefined
  return `{ ${kept.map(([name, value]) => `${literal(name)}: ${literal(value)}`).join(', ')} }`
}

/** A text of TypeScript. What a reader of the test would not see is written as its number. */
function literal(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${escaped(inner)}'`
}

function comment(text: string): string {
  return escaped(text.replace(/\s+/g, ' ')).slice(0, 200)
}

function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, (one) => {
    const code = one.codePointAt(0)!.toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
}

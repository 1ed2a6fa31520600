/** Publish: one call of a sink, and what becomes of each event. */
import { within } from '../backoff.js'
import { rememberBody } from '../brokers/handover.js'
import type { Sink } from '../brokers/sink.js'
import { OnceboxError } from '../errors.js'
import { toFailure } from '../failure.js'
import type { Retry } from '../inbox/options.js'
import { toMessage } from '../inbox/prepare.js'
import type { Failure, Message } from '../message.js'
import type { Row } from '../postgres/database.js'

/** An event, on its way to one sink. */
export interface OutgoingEvent {
  /** Its number in the outbox. */
  readonly n: string
  readonly shard: number
  readonly attempts: number
  readonly message: Message
}

/** What becomes of a batch. Events in neither list stay as they are: an earlier one of their key failed. */
export interface Verdicts {
  readonly published: OutgoingEvent[]
  readonly failed: { readonly event: OutgoingEvent; readonly failure: Failure; readonly delayMs: number | null }[]
}

/** The whole batch came back: the destination is down, or the sink answers nonsense. Nobody's attempt is counted. */
export class DestinationDown extends Error {
  override readonly name = 'DestinationDown'
  constructor(override readonly cause: unknown) {
    super('a sink could not publish', { cause })
  }
}

export function toEvent(row: Row): OutgoingEvent {
  const body = row['body'] as string
  const createdMs = Number(row['created'])
  const attempts = Number(row['attempts'])
  const envelope = {
    id: row['id'] as string,
    source: row['source'] as string,
    type: row['type'] as string,
    key: (row['key'] ?? undefined) as string | undefined,
    envelope: row['envelope'] as string,
    receivedMs: createdMs,
    attempts,
  }
  const message = { time: new Date(createdMs), ...toMessage(envelope, JSON.parse(body)) }
  rememberBody(message, body)
  return { n: row['n'] as string, shard: Number(row['shard']), attempts, message }
}

export interface PublishOptions {
  readonly retry: Retry
  readonly publishTimeoutMs: number
}

export async function publish(
  sink: Sink,
  events: readonly OutgoingEvent[],
  { retry, publishTimeoutMs }: PublishOptions,
): Promise<Verdicts> {
  let answers: Awaited<ReturnType<Sink['publish']>>
  try {
    const publishing = sink.publish(events.map(({ message }) => message))
    // A sink that never answers must not keep its shards for good.
    answers = await within(publishTimeoutMs, publishing, () => tooLate(publishTimeoutMs))
    checkAnswers(answers, events.length)
  } catch (error) {
    throw new DestinationDown(error)
  }
  const published: OutgoingEvent[] = []
  const failed: Verdicts['failed'] = []
  const failedKeys = new Set<string>()
  events.forEach((event, at) => {
    const answer = answers[at] ?? undefined
    const { key } = event.message
    if (answer === undefined) return void published.push(event)
    // A sink sends nothing after a failure within a key, so this one was refused only because of the first.
    if (key !== undefined && failedKeys.has(key)) return
    if (key !== undefined) failedKeys.add(key)
    const delayMs = answer.retry === false ? null : retry(answer.error, event.attempts + 1)
    failed.push({ event, failure: toFailure(answer.error), delayMs })
  })
  return { published, failed }
}

function tooLate(ms: number): OnceboxError {
  const advice = 'it counts as down; raise publishTimeoutMs if it needs longer'
  return new OnceboxError('PUBLISH_TIMEOUT', `no answer in ${ms} ms, ${advice}`)
}

function checkAnswers(answers: unknown, expected: number): void {
  const wrong = (what: string): OnceboxError =>
    new OnceboxError(
      'OPTION_INVALID',
      `publish must answer with one undefined or { error, retry } per message; ${what}`,
    )
  if (!Array.isArray(answers)) throw wrong(`got ${answers === null ? 'null' : typeof answers}`)
  if (answers.length !== expected) throw wrong(`got ${answers.length} answers for ${expected} messages`)
  for (const answer of answers as unknown[]) {
    if (answer === undefined || answer === null) continue
    if (typeof answer !== 'object' || !('error' in answer)) throw wrong(`got ${typeof answer} among them`)
  }
}

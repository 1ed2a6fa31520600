/**
 * A webhook as a source: a request becomes a message, and the answer says what became of it.
 *
 *     look at the headers → read the body, up to a limit → verify → deliver → answer after the commit
 *
 * Nothing touches the database before the signature is verified, and nothing is answered 2xx before the commit.
 */
import { OnceboxError } from '../../errors.js'
import type { Failure, Incoming, Outcome } from '../../message.js'
import { checkSameBox } from '../run.js'
import type { Source } from '../source.js'
import { unmappedProblem } from '../unmapped.js'
import { createIntake, flowOf, type Intake, type Read } from '../../http/body.js'
import { tellSafely } from '../../http/report.js'
import { isResponse } from '../../http/response.js'
import { FINGERPRINTS, toMessage } from './event.js'
import type { ResolvedCustom } from './custom.js'
import { ask, type Verify } from './ask.js'
import type { ResolvedSource } from './options.js'
import { isSigned, isTimely, readSignature, UNTIMELY, type Clock, type Refusal } from './verify.js'

export interface WebhookSource extends Source {
  readonly push: true
  /** Takes a request from whatever serves HTTP. It may be passed on without its object. */
  fetch(request: Request): Promise<Response>
}

type Deliver = Parameters<Source['start']>[0]

const BUSY_SECONDS = 1
const AWAY_SECONDS = 5
/** It takes a deploy to mend `map`. */
const UNMAPPED_SECONDS = 60
const MOST_SECONDS = 3_600

export function createSource(options: ResolvedSource | ResolvedCustom): WebhookSource {
  let deliver: Deliver | undefined
  let stopped = false
  /** What was told last: once for each time that it is not ready, for anybody may send requests. */
  let told: string | undefined
  const inFlight = new Set<Promise<Response>>()
  const intake = createIntake(options)

  const notReady = (): Response => {
    const what = stopped ? 'a webhook arrived after its box was stopped' : 'a webhook arrived before box.from(webhook)'
    if (told !== what) tellSafely(options.onError, new OnceboxError('STOPPED', what))
    told = what
    return answer(503, { error: 'not ready' }, { 'retry-after': String(AWAY_SECONDS) })
  }

  const receive = async (request: Request): Promise<Response> => {
    if (request.method !== 'POST') return answer(405, { error: 'only POST' }, { allow: 'POST' })
    if (!deliver) return notReady()
    const messages = await read(options, intake, request)
    if (isResponse(messages)) return messages
    // It may have stopped in the meantime.
    const to = deliver
    if (!to) return notReady()
    const delivery = deliverAll(options, messages, to)
    inFlight.add(delivery)
    return delivery.finally(() => inFlight.delete(delivery))
  }

  return {
    name: options.name,
    push: true,
    ...traitsOf(options),
    async start(given) {
      checkSameBox(options.name, deliver, given)
      deliver = given
      told = undefined
    },
    async stop() {
      deliver = undefined
      stopped = true
      await Promise.allSettled([...inFlight])
    },
    async fetch(request) {
      try {
        return await receive(request)
      } catch (error) {
        // The request is not one. The sender keeps the message.
        tellSafely(options.onError, error)
        return answer(500, { error: 'the message could not be read' })
      }
    },
  }
}

/** What of a message tells two bodies apart, and for how long a request that somebody captured is good. */
function traitsOf(options: ResolvedSource | ResolvedCustom): Pick<Source, 'fingerprint' | 'replayMs'> {
  if ('verify' in options) return options.replayMs === undefined ? {} : { replayMs: options.replayMs }
  const fingerprint = FINGERPRINTS[options.scheme]
  return {
    ...(fingerprint && { fingerprint }),
    // Signed for the latest moment that is taken, and sent at the earliest. GitHub's signatures never grow old.
    ...(options.scheme !== 'github' && { replayMs: 2 * options.toleranceMs }),
  }
}

/** The messages of a request, once it is verified; or the answer to one that is not taken. */
async function read(
  options: ResolvedSource | ResolvedCustom,
  intake: Intake,
  request: Request,
): Promise<readonly Incoming[] | Response> {
  const { headers } = request
  const coding = headers.get('content-encoding')
  if (coding && coding.trim().toLowerCase() !== 'identity') {
    return answer(415, { error: 'compressed bodies are not supported' }, { 'accept-encoding': 'identity' })
  }
  const verify = 'verify' in options ? ask(options, request) : signed(options, request)
  if ('status' in verify) return refuse(verify)
  if (request.bodyUsed) {
    const advice = 'mount it before whatever parses bodies, for the signature is of the bytes'
    const problem = `the body of a webhook had been read already; ${advice}`
    tellSafely(options.onError, new OnceboxError('OPTION_INVALID', problem))
    return answer(500, { error: 'not ready' })
  }
  const tooLarge = (): Response => answer(413, { error: `the limit is ${options.maxBytes} bytes` })
  if (Number(headers.get('content-length')) > options.maxBytes) return tooLarge()
  const body = await intake.read(flowOf(request))
  if ('problem' in body) return body.problem === 'too-large' ? tooLarge() : unread(body.problem)
  return (await verify(body.bytes)) ?? answer(401, { error: 'no signature is right' })
}

async function deliverAll(
  options: ResolvedSource | ResolvedCustom,
  messages: readonly Incoming[],
  to: Deliver,
): Promise<Response> {
  const accepted = 'verify' in options ? options.accepted : undefined
  try {
    const outcomes = await to(messages)
    for (const outcome of outcomes) {
      if (!outcome.ack && outcome.status === 'failed') tellSafely(options.onFailed, toError(outcome.error))
    }
    // One that is not safe is for the sender to send again, and the others with it: they are duplicates then.
    const decisive = outcomes.find(({ ack }) => !ack) ?? outcomes[0]
    if (accepted && decisive?.ack !== false) return accepted()
    return decisive ? answerOf(decisive, options.now()) : answer(200, { status: 'skipped' })
  } catch (error) {
    tellSafely(options.onError, error)
    return answer(503, { error: 'try again later' }, { 'retry-after': String(AWAY_SECONDS) })
  }
}

/** By one of the schemes: headers alone tell whether the body is worth reading. */
function signed(options: ResolvedSource, request: Request): Verify | Refusal {
  const clock = (): Clock => ({ nowMs: options.now(), toleranceMs: options.toleranceMs })
  const signature = readSignature(options.scheme, request.headers, clock())
  if ('status' in signature) return signature
  const { id, time } = signature
  const report = (error: unknown): void => tellSafely(options.onUnmapped, error)
  return async (body) => {
    if (!isSigned(signature, body, options.keys)) return undefined
    // Who sends the body slowly would make a copy good for longer than consumers are made to remember it.
    if (!isTimely(signature, clock())) return refuse(UNTIMELY)
    const message = toMessage(options, request, { body, id, time }, report)
    // What it should have become nobody knows before `map` is mended: its sender has it until then.
    if (unmappedProblem(message) === undefined) return [message]
    return answer(503, { error: 'try again later' }, { 'retry-after': String(UNMAPPED_SECONDS) })
  }
}

function refuse({ status, error }: Refusal): Response {
  return answer(status, { error })
}

/** Of a body that did not come, or not in time. Who sends it again is served. */
function unread(problem: Exclude<Extract<Read, { problem: string }>['problem'], 'too-large'>): Response {
  if (problem === 'too-slow') return answer(408, { error: 'the body did not come in time' })
  if (problem === 'broken') return answer(400, { error: 'the body could not be read' })
  return answer(503, { error: 'too many bodies at once' }, { 'retry-after': String(AWAY_SECONDS) })
}

/** What a handler threw, as far as its record tells. */
function toError({ name, message, code, stack, cause }: Failure): Error {
  const error = new Error(message, cause && { cause: toError(cause) })
  return Object.assign(error, { name, ...(code !== undefined && { code }), ...(stack !== undefined && { stack }) })
}

/**
 * Whatever is kept is answered 200, a quarantined message too: sending it again would change nothing. What is busy until a
 * certain time did not fit into quarantine.
 */
function answerOf(outcome: Outcome, nowMs: number): Response {
  const { ack, status } = outcome
  if (ack) return answer(200, { status })
  if (status === 'busy' && outcome.retryAt) {
    return answer(429, { status }, { 'retry-after': String(retrySeconds(outcome, nowMs)) })
  }
  if (status === 'busy') return answer(409, { status }, { 'retry-after': String(BUSY_SECONDS) })
  return answer(503, { status }, { 'retry-after': String(retrySeconds(outcome, nowMs)) })
}

function retrySeconds({ retryAt }: Outcome, nowMs: number): number {
  const seconds = Math.ceil(((retryAt?.getTime() ?? 0) - nowMs) / 1_000)
  return seconds <= 0 ? AWAY_SECONDS : Math.min(seconds, MOST_SECONDS)
}

function answer(status: number, body: object, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  })
}

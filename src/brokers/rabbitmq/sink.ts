/**
 * RabbitMQ as a sink: an event is published when the broker has confirmed it, which for a durable queue means that it
 * is on disk, and for a quorum queue on most of its nodes.
 *
 * Events of one key go one after the other, and none after one that failed; the others side by side.
 */
import type { Message } from '../../message.js'
import { lanesOf } from '../lanes.js'
import { createClosable, enoughOf, inTimeOf, later, NO_PLACE_MS, untried, type Answer } from '../send.js'
import type { PublishLimits, Sink } from '../sink.js'
import { inTime, openSink, type RabbitConfirmChannel, type RabbitMessage, type Session } from './client.js'
import { toPublication, type Publication } from './event.js'
import { InFlight } from './in-flight.js'
import type { ResolvedSink } from './options.js'
import { assertExchange } from './topology.js'

/** What a sink answers for an event that the broker refused. */
export interface RabbitError extends Error {
  /** UNROUTABLE: no queue took it. REFUSED: a queue did not accept it, because it is full for instance. */
  readonly code: 'UNROUTABLE' | 'REFUSED'
}

/** An open channel. */
interface Publishing {
  readonly session: Session<RabbitConfirmChannel>
  readonly inFlight: InFlight
  /** To be called if the channel is lost: what waits for a confirmation. */
  readonly unconfirmed: Set<() => void>
}

const PRECONDITION_FAILED = 406

/** No answer: the channel was lost before it came, or before the event was sent. */
const OPEN = Symbol('open')

type Answers = (Answer | typeof OPEN)[]

/** A call of publish, and its answers so far. */
interface Call {
  readonly batch: readonly Message[]
  readonly answers: Answers
  readonly limits: PublishLimits | undefined
  readonly enough: ReturnType<typeof enoughOf>
}

export function createSink(options: ResolvedSink): Sink & { readonly name?: string } {
  let opening: Promise<Publishing> | undefined

  /** The channel there is, or a new one. */
  const open = async (): Promise<Publishing> => {
    const own = (opening ??= openPublishing(options))
    const publishing = await own.catch((error: unknown) => ({ error }))
    if ('session' in publishing && publishing.session.problem === undefined) return publishing
    if (opening === own) opening = undefined
    if ('error' in publishing) throw publishing.error
    return open()
  }

  const publish = async (batch: readonly Message[], limits?: PublishLimits): Promise<Answer[]> => {
    const lanes = lanesOf(batch)
    const answers: Answers = batch.map(() => OPEN)
    const call = { batch, answers, limits, enough: enoughOf(limits) }
    let lost = await publishLanes(await inTimeOf(limits, open()), options, call, lanes)
    // The broker closes the channel for an event that it cannot take at all, such as one that is too large, and does
    // not say which it was. One lane after the other it is found, and the others get through.
    for (const lane of isRefusal(lost) ? lanes : []) {
      if (!lane.some((at) => answers[at] === OPEN)) continue
      try {
        lost = await publishLanes(await inTimeOf(limits, open()), options, call, [lane])
      } catch (error) {
        // Others have their answer.
        lost = error
        break
      }
      const culprit = lane.find((at) => answers[at] === OPEN)
      if (isRefusal(lost) && culprit !== undefined) answers[culprit] = { error: lost, retry: true }
      else if (lost !== undefined) break
    }
    // While nothing was answered the batch as a whole comes back, and nobody's attempt counts.
    if (answers.every((answer) => answer === OPEN) && batch.length > 0) throw lost
    return answers.map((answer) => (answer === OPEN ? untried(lost) : answer))
  }

  return createClosable(options.name, publish, async (finished) => {
    await finished
    const own = opening
    opening = undefined
    const publishing = await own?.catch(() => undefined)
    await publishing?.session.close()
  })
}

async function openPublishing(options: ResolvedSink): Promise<Publishing> {
  const session = await openSink(options)
  const inFlight = new InFlight()
  const unconfirmed = new Set<() => void>()
  void session.lost.then(() => {
    for (const lose of unconfirmed) lose()
    // A channel may be gone while its connection is not.
    return session.close()
  })
  session.channel.on('return', (message: RabbitMessage) => inFlight.markReturned(message))
  try {
    await inTime(options, assertExchange(session.channel, options), session.lost)
  } catch (error) {
    session.fail(error)
    throw error
  }
  return { session, inFlight, unconfirmed }
}

/** Writes down the answers. Answers why the channel was lost, if it was: some are open then. */
async function publishLanes(
  publishing: Publishing,
  options: ResolvedSink,
  { batch, answers, limits, enough }: Call,
  lanes: readonly (readonly number[])[],
): Promise<unknown> {
  const { session } = publishing
  // Not for all of them: a broker that confirms one after the other is slow, and there.
  const silence = setTimeout(() => session.abandon(noAnswer(session, options)), options.timeoutMs)
  const end = (): void => session.abandon(isBlocked(session) ?? limits?.signal.reason)
  limits?.signal.addEventListener('abort', end)
  await Promise.all(
    lanes.map(async (lane) => {
      let failed: unknown
      for (const at of lane) {
        if (answers[at] !== OPEN) continue
        failed ??= isBlocked(session) ?? enough()?.error
        if (failed === undefined) answers[at] = await publishOne(publishing, options, batch[at]!)
        else answers[at] = untried(failed)
        if (answers[at] === OPEN) return
        silence.refresh()
        failed = answers[at]?.error
      }
    }),
  )
  clearTimeout(silence)
  limits?.signal.removeEventListener('abort', end)
  return session.problem
}

async function publishOne(
  publishing: Publishing,
  options: ResolvedSink,
  message: Message,
): Promise<Answer | typeof OPEN> {
  const { session } = publishing
  let publication: Publication
  let confirmation: Confirmation
  try {
    publication = toPublication(message, options)
    confirmation = await confirm(publishing, options, publication)
  } catch (error) {
    // Thrown at once: the channel is closed, or the event does not fit the protocol and never will.
    return session.problem === undefined ? { error, retry: false } : OPEN
  }
  if (session.problem !== undefined) return OPEN
  const { routingKey, properties } = publication
  const { refused, isReturned } = confirmation
  if (refused) {
    // A queue is full, or has lost its leader: it would refuse any other event as well.
    return later(rabbitError('REFUSED', `RabbitMQ did not accept ${properties.messageId}`, refused), NO_PLACE_MS)
  }
  if (!isReturned) return undefined
  const what = `no queue takes the routing key ${routingKey} of the exchange ${options.exchange}`
  return later(rabbitError('UNROUTABLE', what), NO_PLACE_MS)
}

interface Confirmation {
  /** What the broker has against it, if anything. */
  readonly refused: unknown
  /** No queue took it. */
  readonly isReturned: boolean
}

/** Resolves when the broker has answered, and when the channel is lost. */
function confirm(
  { session, inFlight, unconfirmed }: Publishing,
  { exchange }: ResolvedSink,
  publication: Publication,
): Promise<Confirmation> {
  const { routingKey, content, properties } = publication
  return new Promise((resolve) => {
    const settle = (refused?: unknown): void => {
      unconfirmed.delete(settle)
      inFlight.remove(one)
      // What comes back comes before its confirmation.
      resolve({ refused, isReturned: one.isReturned })
    }
    session.channel.publish(exchange, routingKey, content, properties, settle)
    const one = inFlight.add(publication)
    unconfirmed.add(settle)
  })
}

/** What is sent to a broker that does not read would be published when it does, and again by then. */
function isBlocked({ blocked }: Publishing['session']): Error | undefined {
  return blocked === undefined ? undefined : new Error(`RabbitMQ takes no messages for now: ${blocked}`)
}

function noAnswer(session: Publishing['session'], { timeoutMs }: ResolvedSink): Error {
  return isBlocked(session) ?? new Error(`RabbitMQ did not confirm in ${timeoutMs} ms`)
}

/** The broker closed the channel because of what was published on it. */
function isRefusal(lost: unknown): boolean {
  return (lost as { code?: unknown } | undefined)?.code === PRECONDITION_FAILED
}

function rabbitError(code: RabbitError['code'], message: string, cause?: unknown): RabbitError {
  return Object.assign(new Error(message, cause === undefined ? {} : { cause }), { name: 'RabbitError', code })
}

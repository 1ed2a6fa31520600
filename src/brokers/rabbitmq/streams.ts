/**
 * A stream is no queue: nothing is taken from it, and a consumer begins at its end. What is published while nobody listens
 * would be lost without a word, so it is not read.
 *
 * AMQP does not say what a queue is. What a stream hands out has a header with its place, which a shovel may have copied
 * into a queue; and a stream refuses to be asked for a single message.
 */
import type { RabbitChannel, RabbitMessage, Session } from './client.js'

export interface Streams {
  /** Before the queue is consumed: a stream ends the connection. Asks only where there was a sign of one. */
  check(channel: RabbitChannel): Promise<void>
  /** What that end means. */
  explain(problem: unknown): unknown
  /** Answers whether the message may be taken. If not, the session has ended. */
  allows(raw: RabbitMessage, session: Session<RabbitChannel>): boolean
}

interface Asking {
  get(queue: string): Promise<RabbitMessage | false>
}

const PLACE = 'x-stream-offset'
const NOT_IMPLEMENTED = 540

export function createStreams(queue: string): Streams {
  let state: 'unknown' | 'suspect' | 'queue' = 'unknown'
  const refusal = (cause?: unknown): Error => {
    const why = 'what is published while nobody listens would be lost'
    return new Error(`${queue} is a stream, and ${why}: bind a quorum queue to its exchange, and read that`, { cause })
  }
  return {
    async check(channel) {
      if (state !== 'suspect') return
      const message = await (channel as RabbitChannel & Asking).get(queue)
      if (message !== false) channel.nack(message)
      state = 'queue'
    },
    explain: (problem) =>
      state === 'suspect' && (problem as { code?: unknown } | undefined)?.code === NOT_IMPLEMENTED
        ? refusal(problem)
        : problem,
    allows({ properties }, session) {
      if (state === 'queue' || properties.headers?.[PLACE] === undefined) return true
      state = 'suspect'
      session.fail(refusal())
      return false
    },
  }
}

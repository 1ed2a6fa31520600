/** What in the settings loses messages, or their order, as far as AMQP lets anybody learn of it: what we declare, and headers. */
import type { Warn } from '../source.js'
import type { RabbitMessage } from './client.js'
import type { ResolvedSource, Topology } from './options.js'

/** By default, from RabbitMQ 4. */
const DEFAULT_LIMIT = 20

const NO_HEARTBEATS =
  'without heartbeats the broker may keep what a lost connection had while it hands out newer messages of the same keys: ' +
  'set heartbeatMs, or the heartbeat of the URL, to 10 s'

/** A line for each setting. `version` is the broker's. */
export function warningsOf(
  { topology, isWithoutHeartbeats }: Pick<ResolvedSource, 'topology' | 'isWithoutHeartbeats'>,
  version: string | undefined,
): string[] {
  return [...(isWithoutHeartbeats ? [NO_HEARTBEATS] : []), ...(topology ? warningsOfQueue(topology, version) : [])]
}

/** Of the queue that we declare. */
function warningsOfQueue(topology: Topology, version: string | undefined): string[] {
  const { type = 'quorum', deadLetterExchange, arguments: given = {} } = topology
  const hasDeadLetters = deadLetterExchange !== undefined || given['x-dead-letter-exchange'] !== undefined
  const lines: string[] = []
  const limit = Number(given['x-delivery-limit'] ?? (Number.parseInt(version ?? '', 10) >= 4 ? DEFAULT_LIMIT : -1))
  if (type === 'quorum' && limit >= 0 && !hasDeadLetters) {
    lines.push(`the queue drops a message after ${limit} deliveries: set assert.deadLetterExchange`)
  }
  const ttl = given['x-message-ttl']
  if (ttl !== undefined && !hasDeadLetters)
    lines.push(`the queue drops a message after ${Number(ttl)} ms: remove x-message-ttl`)
  const expires = given['x-expires']
  if (expires !== undefined) {
    lines.push(`the queue is deleted when nobody has used it for ${Number(expires)} ms: remove x-expires`)
  }
  const isBounded = given['x-max-length'] !== undefined || given['x-max-length-bytes'] !== undefined
  const overflow = given['x-overflow']
  if (isBounded && !(typeof overflow === 'string' && overflow.startsWith('reject-publish'))) {
    lines.push('the queue drops its oldest message when it is full: set x-overflow to reject-publish')
  }
  return lines
}

const NEAR =
  `a message was delivered ${DEFAULT_LIMIT / 2} times; a quorum queue drops it at its x-delivery-limit, ` +
  `${DEFAULT_LIMIT} by default from RabbitMQ 4: give the queue a dead-letter exchange`

/** Nobody says which limit a queue has; what is delivered says how often it was. */
export function warnOfCount({ properties }: RabbitMessage, warn: Warn): void {
  if (Number(properties.headers?.['x-delivery-count'] ?? 0) >= DEFAULT_LIMIT / 2) warn(NEAR)
}

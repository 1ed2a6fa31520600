/** The options of a queue, to receive and to send. */
import { checked, integer, invalid, name, oneOf, optional, resolve } from '../../options.js'
import { READING, WRITING, type ReadOptions, type WriteOptions } from '../event.js'
import type { SqsClient, SqsMessage } from './client.js'

export interface SqsReadOptions extends ReadOptions<SqsMessage> {
  /** Requests that wait for messages, side by side. Default: 4. */
  pollers?: number | undefined
  /** How long such a request waits for a first message, in seconds. Default: 20, which is the most. */
  waitSeconds?: number | undefined
  /** How long a message is hidden from others, in seconds; extended while it is held. Default: 30. */
  visibilitySeconds?: number | undefined
  /** The most messages in one delivery to the box. Default: 100. */
  batch?: number | undefined
  /** How long a delivery that is not full waits for more. Default: 5. */
  lingerMs?: number | undefined
  /** Deliveries to the box at a time; of one key there is never more than one. Default: 2. */
  concurrency?: number | undefined
}

export interface SqsWriteOptions extends WriteOptions {
  /** CloudEvents: all in one JSON document, or attributes in message attributes. Default: 'structured'. */
  mode?: 'binary' | 'structured' | undefined
  /** What the sink is called in the outbox. Default: `sqs:` and the queue. */
  name?: string | undefined
}

export interface SqsOptions extends SqsReadOptions, SqsWriteOptions {
  /** https://sqs.eu-west-1.amazonaws.com/123456789012/orders; that of a FIFO queue ends in .fifo. */
  queueUrl: string
  /** An `SQSClient`, which remains yours. Default: one of our own, with the SDK's credentials. */
  client?: SqsClient | undefined
  /** For a client of our own. Default: what the URL says, else the SDK's. */
  region?: string | undefined
  /** For a client of our own: an emulator, or a VPC endpoint. */
  endpoint?: string | undefined
  /** For one request, and for one `publish`. Default: 15 000. */
  timeoutMs?: number | undefined
}

/** What SQS allows. */
const MAX_WAIT_SECONDS = 20
const MAX_VISIBILITY_SECONDS = 43_200

const BOTH = {
  queueUrl: checked((where, given: string) => {
    if (typeof given === 'string' && URL.canParse(given) && /[^/]\/[^/]+$/.test(given)) return given
    throw invalid(
      `${where} must be the URL of a queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders`,
    )
  }),
  client: optional(
    checked((where, given: SqsClient) => {
      if (typeof given?.send === 'function') return given
      throw invalid(`${where} must be an SQSClient of @aws-sdk/client-sqs`)
    }),
    'one of our own',
  ),
  region: optional(name(), 'that of the URL'),
  endpoint: optional(name(), 'AWS'),
  timeoutMs: integer({ least: 1, most: 600_000, fallback: 15_000 }),
}

export const SOURCE = {
  ...BOTH,
  ...READING<SqsMessage>(),
  pollers: integer({ least: 1, most: 100, fallback: 4 }),
  waitSeconds: integer({ least: 0, most: MAX_WAIT_SECONDS, fallback: MAX_WAIT_SECONDS }),
  visibilitySeconds: integer({ least: 1, most: MAX_VISIBILITY_SECONDS, fallback: 30 }),
  batch: integer({ least: 1, most: 10_000, fallback: 100 }),
  lingerMs: integer({ least: 0, most: 10_000, fallback: 5 }),
  concurrency: integer({ least: 1, most: 100, fallback: 2 }),
}

/** Unlike elsewhere, a codec goes with both modes: in a JSON document its bytes are base64. */
export const SINK = {
  ...BOTH,
  ...WRITING,
  mode: oneOf(['binary', 'structured'], 'structured'),
  name: optional(name(), '`sqs:` and the queue'),
}

export type Resolved = ReturnType<typeof resolveQueue>

export function resolveQueue(given: SqsOptions) {
  if (typeof given !== 'object' || given === null) throw invalid('sqs takes options: { queueUrl }')
  const options = resolve('sqs', given, { ...SOURCE, ...SINK })
  const { queueUrl, client, region, endpoint } = options
  if (client !== undefined && (region ?? endpoint) !== undefined) {
    throw invalid('sqs: region and endpoint are for a client of our own; give them to the client')
  }
  return { ...options, name: options.name ?? `sqs:${queueUrl.slice(queueUrl.lastIndexOf('/') + 1)}` }
}

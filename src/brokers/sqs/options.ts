/** The options of a queue, to receive and to send: type, default and check in one place, resolved once. */
import { checkInteger, checkKnown, checkOneOf, nameProblem } from '../../check-options.js'
import { OnceboxError } from '../../errors.js'
import { checkEventOptions, type ReadOptions, type WriteOptions } from '../event.js'
import type { QueueOptions, SqsClient, SqsMessage } from './client.js'

export interface SqsReadOptions extends ReadOptions<SqsMessage> {
  /** Requests that wait for messages, side by side. Default: 4. */
  pollers?: number
  /** How long such a request waits for a first message, in seconds. Default: 20, which is the most. */
  waitSeconds?: number
  /** How long a message is hidden from others, in seconds; extended while it is held. Default: 30. */
  visibilitySeconds?: number
  /** The most messages in one delivery to the box. Default: 100. */
  batchSize?: number
  /** How long a delivery that is not full waits for more. Default: 5. */
  lingerMs?: number
  /** Deliveries to the box at a time; of one key there is never more than one. Default: 2. */
  concurrency?: number
}

export interface SqsWriteOptions extends WriteOptions {
  /** CloudEvents: all in one JSON document, or attributes in message attributes. Default: 'structured'. */
  mode?: 'binary' | 'structured'
  /** What the sink is called in the outbox. Default: `sqs:` and the queue. */
  name?: string
}

export interface SqsOptions extends SqsReadOptions, SqsWriteOptions {
  /** https://sqs.eu-west-1.amazonaws.com/123456789012/orders; that of a FIFO queue ends in .fifo. */
  queueUrl: string
  /** An `SQSClient`, which remains yours. Default: one of our own, with the SDK's credentials. */
  client?: SqsClient
  /** For a client of our own. Default: what the URL says, else the SDK's. */
  region?: string
  /** For a client of our own: an emulator, or a VPC endpoint. */
  endpoint?: string
  /** For one request, and for one `publish`. Default: 15 000. */
  timeoutMs?: number
}

export type Resolved = QueueOptions &
  Required<
    Pick<SqsOptions, 'pollers' | 'waitSeconds' | 'visibilitySeconds' | 'batchSize' | 'lingerMs' | 'concurrency'>
  > &
  ReadOptions<SqsMessage> & { readonly mode: 'binary' | 'structured'; readonly name: string | undefined }

const READ = ['source', 'type', 'codec', 'map'] as const
const KNOWN = [
  ...['queueUrl', 'client', 'region', 'endpoint', 'timeoutMs', 'mode', 'name'],
  ...['pollers', 'waitSeconds', 'visibilitySeconds', 'batchSize', 'lingerMs', 'concurrency'],
  ...READ,
]
/** What SQS allows. */
const MAX_WAIT_SECONDS = 20
const MAX_VISIBILITY_SECONDS = 43_200

export function resolve(given: SqsOptions): Resolved {
  if (typeof given !== 'object' || given === null) throw invalid('it takes options: { queueUrl }')
  checkKnown('sqs', given, KNOWN)
  const { queueUrl, client, region, endpoint, name, mode = 'structured', source, type, codec, map } = given
  if (typeof queueUrl !== 'string' || !URL.canParse(queueUrl) || !/[^/]\/[^/]+$/.test(queueUrl)) {
    throw invalid(
      'queueUrl must be the URL of a queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders',
    )
  }
  if (client !== undefined && typeof client?.send !== 'function') {
    throw invalid('client must be an SQSClient of @aws-sdk/client-sqs')
  }
  if (client !== undefined && (region ?? endpoint) !== undefined) {
    throw invalid('region and endpoint are for a client of our own; give them to the client')
  }
  checkOneOf('sqs: mode', mode, ['binary', 'structured'])
  // Unlike elsewhere, a codec goes with both modes: in a JSON document its bytes are base64.
  checkEventOptions('sqs', { source, type, codec, map })
  const problem = name === undefined ? undefined : nameProblem(name)
  if (problem) throw invalid(`name ${problem}`)
  const integer = (option: keyof SqsOptions, value: number, min: number, max: number): number =>
    checkInteger(`sqs: ${option}`, value, min, max)
  return {
    ...{ queueUrl, client, region, endpoint, mode },
    name: name ?? `sqs:${queueUrl.slice(queueUrl.lastIndexOf('/') + 1)}`,
    timeoutMs: integer('timeoutMs', given.timeoutMs ?? 15_000, 1, 600_000),
    pollers: integer('pollers', given.pollers ?? 4, 1, 100),
    waitSeconds: integer('waitSeconds', given.waitSeconds ?? MAX_WAIT_SECONDS, 0, MAX_WAIT_SECONDS),
    visibilitySeconds: integer('visibilitySeconds', given.visibilitySeconds ?? 30, 1, MAX_VISIBILITY_SECONDS),
    batchSize: integer('batchSize', given.batchSize ?? 100, 1, 10_000),
    lingerMs: integer('lingerMs', given.lingerMs ?? 5, 0, 10_000),
    concurrency: integer('concurrency', given.concurrency ?? 2, 1, 100),
    ...{ source, type, codec, map },
  }
}

function invalid(what: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', `sqs: ${what}`)
}

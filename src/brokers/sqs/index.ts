/**
 * Amazon SQS: a queue, to receive from and to send to.
 *
 *     box.from(sqs({ queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders' }))
 *     box.to(sqs({ queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/invoices.fifo' }))
 *
 * In Lambda the service receives, and hands over what it got:
 *
 *     const orders = box.from(sqsLambda())
 *     export const handler = (event) => orders.handle(event)
 */
import type { Sink } from '../sink.js'
import type { Source } from '../source.js'
import { resolveQueue, type SqsOptions } from './options.js'
import { createSink } from './sink.js'
import { createSource } from './source.js'

export type { SqsAttribute, SqsClient, SqsError, SqsMessage } from './client.js'
export { sqsLambda, type LambdaEvent, type LambdaRecord, type LambdaResponse, type SqsLambda } from './lambda.js'
export type { SqsOptions, SqsReadOptions, SqsWriteOptions } from './options.js'

/** A queue is both: what `box.from` takes, and what `box.to` takes. */
export interface SqsQueue extends Source, Sink {
  /** What the sink is called in the outbox. */
  readonly name?: string
}

export function sqs(options: SqsOptions): SqsQueue {
  const resolved = resolveQueue(options)
  return { ...createSource(resolved), ...createSink(resolved) }
}

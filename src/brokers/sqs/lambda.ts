/**
 * A queue that Lambda polls: the service hands over a batch, and is told which of it to deliver again.
 *
 * The event source mapping must have ReportBatchItemFailures, or the answer is ignored and everything is deleted.
 */
import { OnceboxError } from '../../errors.js'
import type { Incoming, Outcome } from '../../message.js'
import { resolve } from '../../options.js'
import { READING, type ReadOptions } from '../event.js'
import { guarded } from '../read.js'
import { checkSameBox } from '../run.js'
import type { Deliver, Source } from '../source.js'
import { isFifo, type SqsMessage } from './client.js'
import { readMessage } from './event.js'

/** What Lambda calls its function with; `SQSEvent` of @types/aws-lambda. */
export interface LambdaEvent {
  readonly Records: readonly LambdaRecord[]
}

export interface LambdaRecord {
  readonly messageId: string
  readonly receiptHandle: string
  readonly body: string
  readonly attributes: object
  readonly messageAttributes: Readonly<Record<string, LambdaAttribute>>
  readonly eventSourceARN: string
}

interface LambdaAttribute {
  readonly dataType: string
  readonly stringValue?: string | undefined
  readonly binaryValue?: string | undefined
}

export interface LambdaResponse {
  batchItemFailures: { itemIdentifier: string }[]
}

export interface SqsLambda extends Source {
  readonly push: true
  readonly broker: true
  /** Delivers a batch. It may be passed on without its object. Rejects if nothing could be delivered. */
  handle(event: LambdaEvent): Promise<LambdaResponse>
}

export function sqsLambda(options: ReadOptions<SqsMessage> = {}): SqsLambda {
  const reading = resolve('sqsLambda', options, READING<SqsMessage>())
  const inFlight = new Set<Promise<unknown>>()
  let deliver: Deliver | undefined

  return {
    push: true,
    broker: true,
    async start(given) {
      checkSameBox('sqsLambda', deliver, given)
      deliver = given
    },
    async stop() {
      deliver = undefined
      await Promise.allSettled([...inFlight])
    },
    async handle({ Records: records }) {
      if (!deliver)
        throw new OnceboxError('STOPPED', 'a batch arrived before box.from(sqsLambda()), or after box.stop()')
      const delivery = deliver(records.map((record) => readRecord(record, reading)))
      inFlight.add(delivery)
      try {
        return { batchItemFailures: failuresOf(records, await delivery) }
      } finally {
        inFlight.delete(delivery)
      }
    },
  }
}

const readRecord = guarded(
  ({ body }: LambdaRecord, { source }: ReadOptions<SqsMessage>) => ({ body, source }),
  (record: LambdaRecord, options: ReadOptions<SqsMessage>): Incoming => {
    const { messageId, receiptHandle, body, attributes, eventSourceARN } = record
    const entries = Object.entries(record.messageAttributes).map(([name, { dataType, stringValue, binaryValue }]) => [
      name,
      {
        DataType: dataType,
        StringValue: stringValue,
        BinaryValue: binaryValue === undefined ? undefined : Buffer.from(binaryValue, 'base64'),
      },
    ])
    const raw: SqsMessage = {
      MessageId: messageId,
      ReceiptHandle: receiptHandle,
      Body: body,
      Attributes: attributes as Record<string, string>,
      MessageAttributes: Object.fromEntries(entries) as SqsMessage['MessageAttributes'],
    }
    // arn:aws:sqs:eu-west-1:123456789012:orders
    const queueUrl = eventSourceARN.replaceAll(':', '/')
    return readMessage(raw, { ...options, queueUrl, fifo: isFifo(queueUrl) })
  },
)

/** What is acknowledged is committed, and may be deleted also behind a failure of its group. */
function failuresOf(
  records: readonly LambdaRecord[],
  outcomes: readonly Outcome[],
): LambdaResponse['batchItemFailures'] {
  return records.flatMap((record, at) => (outcomes[at]?.ack === true ? [] : [{ itemIdentifier: record.messageId }]))
}

/** The calls of SQS that are needed, each bounded in time. The SDK is the user's, and loaded when it is first used. */
import type * as Package from '@aws-sdk/client-sqs'
import { OnceboxError } from '../../errors.js'

/** An `SQSClient` of @aws-sdk/client-sqs. */
export interface SqsClient {
  send(command: never, options?: { abortSignal?: AbortSignal }): Promise<unknown>
  destroy?(): void
}

/** A message as ReceiveMessage hands it out. */
export interface SqsMessage {
  readonly MessageId?: string | undefined
  readonly ReceiptHandle?: string | undefined
  readonly Body?: string | undefined
  /** MessageGroupId, MessageDeduplicationId, SentTimestamp, ApproximateReceiveCount and so on. */
  readonly Attributes?: Readonly<Record<string, string>> | undefined
  readonly MessageAttributes?: Readonly<Record<string, SqsAttribute>> | undefined
}

export interface SqsAttribute {
  readonly DataType?: string | undefined
  readonly StringValue?: string | undefined
  readonly BinaryValue?: Uint8Array | undefined
}

export interface OutgoingMessage {
  readonly MessageBody: string
  readonly MessageAttributes: Readonly<Record<string, SqsAttribute>>
  readonly MessageGroupId?: string
  readonly MessageDeduplicationId?: string
}

/** What SQS refused of a batch. */
export interface Refusal {
  /** Its position in the batch. */
  readonly at: number
  readonly error: SqsError
}

export interface SqsError extends Error {
  /** The code of SQS, such as `ReceiptHandleIsInvalid`. */
  readonly code: string
  /** The request was wrong, so that another try will fail as well. */
  readonly senderFault: boolean
}

/** What one request may hold. */
export const MAX_ENTRIES = 10

export interface Queue {
  /** Up to ten messages; waits for the first one. */
  receive(options: { waitSeconds: number; visibilitySeconds: number; signal: AbortSignal }): Promise<SqsMessage[]>
  remove(receipts: readonly string[]): Promise<Refusal[]>
  /** Hides messages for so many seconds from now: longer, to keep them; for a while, to give them back. */
  hide(entries: readonly { readonly receipt: string; readonly seconds: number }[]): Promise<Refusal[]>
  send(messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<Refusal[]>
  /** Its attributes, by the names of SQS. */
  attributes(names: readonly string[], signal: AbortSignal): Promise<Readonly<Record<string, string>>>
  /** Closes the client, if it is our own. */
  close(): void
}

export interface QueueOptions {
  readonly queueUrl: string
  readonly client: SqsClient | undefined
  readonly region: string | undefined
  readonly endpoint: string | undefined
  readonly timeoutMs: number
}

type Sdk = typeof Package
interface Answer {
  Attributes?: Record<string, string>
  Messages?: SqsMessage[]
  Successful?: { Id?: string }[]
  Failed?: { Id?: string; Code?: string; Message?: string; SenderFault?: boolean }[]
}

/** Rejects if the SDK is missing. Nothing is connected before the first call. */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { queueUrl: QueueUrl, timeoutMs } = options
  const sdk = await loadSdk()
  const own = options.client ? undefined : createClient(sdk, options)
  const client = (options.client ?? own)!

  const call = async (command: object, limitMs: number, signal?: AbortSignal): Promise<Answer> => {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), limitMs)
    const onAbort = (): void => abort.abort()
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) onAbort()
    try {
      return (await client.send(command as never, { abortSignal: abort.signal })) ?? {}
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (abort.signal.aborted) throw sqsError('Timeout', `SQS did not answer in ${limitMs} ms`, false, error)
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }
  const refusals = ({ Failed = [] }: Answer): Refusal[] =>
    Failed.map(({ Id, Code = 'Unknown', Message = Code, SenderFault = false }) => ({
      at: Number(Id),
      error: sqsError(Code, Message, SenderFault),
    }))

  return {
    async receive({ waitSeconds, visibilitySeconds, signal }) {
      const command = new sdk.ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: MAX_ENTRIES,
        WaitTimeSeconds: waitSeconds,
        VisibilityTimeout: visibilitySeconds,
        MessageSystemAttributeNames: ['All'],
        MessageAttributeNames: ['All'],
      })
      const { Messages = [] } = await call(command, waitSeconds * 1_000 + timeoutMs, signal)
      return Messages
    },
    async remove(receipts) {
      const Entries = receipts.map((ReceiptHandle, at) => ({ Id: String(at), ReceiptHandle }))
      return refusals(await call(new sdk.DeleteMessageBatchCommand({ QueueUrl, Entries }), timeoutMs))
    },
    async hide(entries) {
      const Entries = entries.map(({ receipt, seconds }, at) => ({
        Id: String(at),
        ReceiptHandle: receipt,
        VisibilityTimeout: seconds,
      }))
      return refusals(await call(new sdk.ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries }), timeoutMs))
    },
    async send(messages, signal) {
      const Entries = messages.map((message, at) => ({ Id: String(at), ...message }))
      const command = new sdk.SendMessageBatchCommand({ QueueUrl, Entries: Entries as never })
      const answer = await call(command, timeoutMs, signal)
      return [...refusals(answer), ...unanswered(answer, messages.length)]
    },
    async attributes(names, signal) {
      const command = new sdk.GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...names] as never })
      return (await call(command, timeoutMs, signal)).Attributes ?? {}
    },
    close: () => own?.destroy?.(),
  }
}

/**
 * The entries of which an answer says nothing: nobody knows whether SQS has them. Throws where it says nothing at all, as
 * a proxy may answer in place of SQS.
 */
function unanswered({ Successful, Failed }: Answer, count: number): Refusal[] {
  if (!Successful && !Failed) throw sqsError('InvalidAnswer', 'SQS did not say what became of the events', false)
  const known = new Set([...(Successful ?? []), ...(Failed ?? [])].map(({ Id }) => Id))
  const missing = Array.from({ length: count }, (_, at) => at).filter((at) => !known.delete(String(at)))
  // Those of others: one of them may mean what is missing.
  const strange = (Failed ?? []).filter(({ Id }) => known.has(Id)).map(({ Id, Code }) => `${Id} failed, ${Code}`)
  const words = ['SQS did not say what became of the event', ...strange].join('; ')
  return missing.map((at) => ({ at, error: sqsError('InvalidAnswer', words, false) }))
}

/** The name of a queue; that of a FIFO queue ends in `.fifo`. */
export function queueName(queueUrl: string): string {
  return queueUrl.slice(queueUrl.lastIndexOf('/') + 1)
}

export function isFifo(queueUrl: string): boolean {
  return queueUrl.endsWith('.fifo')
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-sqs')
  } catch (error) {
    throw new OnceboxError('OPTION_INVALID', 'sqs needs the AWS SDK: npm install @aws-sdk/client-sqs', { cause: error })
  }
}

function createClient(sdk: Sdk, { queueUrl, region = regionOf(queueUrl), endpoint }: QueueOptions): SqsClient {
  return new sdk.SQSClient({ ...(region !== undefined && { region }), ...(endpoint !== undefined && { endpoint }) })
}

/** https://sqs.eu-west-1.amazonaws.com/123456789012/orders */
function regionOf(queueUrl: string): string | undefined {
  return /^https:\/\/sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?\//.exec(queueUrl)?.[1]
}

export function sqsError(code: string, message: string, senderFault: boolean, cause?: unknown): SqsError {
  const error = cause === undefined ? new Error(message) : new Error(message, { cause })
  return Object.assign(error, { name: 'SqsError', code, senderFault })
}

/** SQS for the tests that every broker has to pass. */
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { randomUUID } from 'node:crypto'
import { sqs } from 'oncebox/sqs'

export { name, start } from '../../../tools/services/sqs.mjs'

/** A standard queue: bodies are text, an id is the queue's own, and stays with the message. */
export const capabilities = { prefix: 'ce_', position: true, order: false, binary: false, maxBytes: 1_048_576 }

/** A client for the endpoint of a service; with the credentials of the environment, if there are any. */
export function connect(url) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  return new SQSClient({
    endpoint: url,
    region: process.env.AWS_REGION ?? 'us-east-1',
    ...(process.env.AWS_ACCESS_KEY_ID === undefined && { credentials }),
  })
}

const clients = new Map()

/** One for each endpoint, and for as long as the process lives. */
function clientOf({ url }) {
  if (!clients.has(url)) clients.set(url, connect(url))
  return clients.get(url)
}

/** With a limit of deliveries there is a dead-letter queue beside it. */
export async function create(url, { fifo = false, attributes = {}, deliveryLimit, ackMs = 2_000 } = {}) {
  const add = async (further) => {
    const QueueName = `oncebox-${randomUUID()}${fifo ? '.fifo' : ''}`
    const Attributes = { ...(fifo && { FifoQueue: 'true' }), ...attributes, ...further }
    return (await clientOf({ url }).send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl
  }
  const visibilitySeconds = Math.ceil(ackMs / 1_000)
  if (deliveryLimit === undefined) return { url, visibilitySeconds, queueUrl: await add() }
  const deadLetterUrl = await add()
  const { Attributes } = await clientOf({ url }).send(
    new GetQueueAttributesCommand({ QueueUrl: deadLetterUrl, AttributeNames: ['QueueArn'] }),
  )
  const policy = { deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: deliveryLimit }
  return { url, visibilitySeconds, deadLetterUrl, queueUrl: await add({ RedrivePolicy: JSON.stringify(policy) }) }
}

export async function remove({ url, queueUrl, deadLetterUrl }) {
  for (const QueueUrl of [queueUrl, deadLetterUrl]) {
    if (QueueUrl !== undefined) await clientOf({ url }).send(new DeleteQueueCommand({ QueueUrl }))
  }
}

/** What a killed process held comes back after two seconds, and a request that it left behind is over after one. */
export function source(settings, options = {}) {
  const { queueUrl, visibilitySeconds } = settings
  return sqs({ client: clientOf(settings), queueUrl, visibilitySeconds, waitSeconds: 1, ...options })
}

export function sink(settings, options = {}) {
  return sqs({ client: clientOf(settings), queueUrl: settings.queueUrl, ...options })
}

export async function publish(settings, messages) {
  const fifo = settings.queueUrl.endsWith('.fifo')
  const send = async (entries) => {
    const Entries = entries.map((entry, at) => ({ Id: String(at), ...entry }))
    const command = new SendMessageBatchCommand({ QueueUrl: settings.queueUrl, Entries })
    const { Failed = [] } = await clientOf(settings).send(command)
    if (Failed.length > 0) throw new Error(`SQS refused a message: ${Failed[0].Message}`)
  }
  const entries = []
  for (const { headers = {}, body, key, id } of messages) {
    const attributes = Object.entries(headers).map(([name, StringValue]) => [name, { DataType: 'String', StringValue }])
    const entry = {
      MessageBody: Buffer.from(body).toString(),
      MessageAttributes: Object.fromEntries(attributes),
      ...(fifo && { MessageGroupId: key ?? randomUUID(), MessageDeduplicationId: id ?? randomUUID() }),
    }
    // A request may not be larger than a message.
    if (entry.MessageBody.length > 100_000) await send([entry])
    else if (entries.push(entry) === 10) await send(entries.splice(0))
  }
  if (entries.length > 0) await send(entries)
}

/** Waiting, in flight and delayed. */
export async function backlog(settings) {
  const { Attributes } = await clientOf(settings).send(
    new GetQueueAttributesCommand({ QueueUrl: settings.queueUrl, AttributeNames: ['All'] }),
  )
  const counts = ['', 'NotVisible', 'Delayed'].map((state) => Number(Attributes[`ApproximateNumberOfMessages${state}`]))
  return counts.reduce((sum, count) => sum + count, 0)
}

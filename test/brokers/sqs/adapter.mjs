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

export async function create(url, { fifo = false, attributes = {} } = {}) {
  const QueueName = `oncebox-${randomUUID()}${fifo ? '.fifo' : ''}`
  const Attributes = { ...(fifo && { FifoQueue: 'true' }), ...attributes }
  const { QueueUrl: queueUrl } = await clientOf({ url }).send(new CreateQueueCommand({ QueueName, Attributes }))
  return { url, queueUrl }
}

export async function remove({ url, queueUrl }) {
  await clientOf({ url }).send(new DeleteQueueCommand({ QueueUrl: queueUrl }))
}

/** What a killed process held comes back after two seconds, and a request that it left behind is over after one. */
export function source(settings, options = {}) {
  const { queueUrl } = settings
  return sqs({ client: clientOf(settings), queueUrl, visibilitySeconds: 2, waitSeconds: 1, ...options })
}

export function sink(settings, options = {}) {
  return sqs({ client: clientOf(settings), queueUrl: settings.queueUrl, ...options })
}

export async function publish(settings, messages) {
  const fifo = settings.queueUrl.endsWith('.fifo')
  for (let at = 0; at < messages.length; at += 10) {
    const Entries = messages.slice(at, at + 10).map(({ headers = {}, body, key, id }, position) => ({
      Id: String(position),
      MessageBody: Buffer.from(body).toString(),
      MessageAttributes: Object.fromEntries(
        Object.entries(headers).map(([header, StringValue]) => [header, { DataType: 'String', StringValue }]),
      ),
      ...(fifo && { MessageGroupId: key ?? 'none', MessageDeduplicationId: id ?? randomUUID() }),
    }))
    const { Failed = [] } = await clientOf(settings).send(
      new SendMessageBatchCommand({ QueueUrl: settings.queueUrl, Entries }),
    )
    if (Failed.length > 0) throw new Error(`SQS refused a message: ${Failed[0].Message}`)
  }
}

/** Waiting, in flight and delayed. */
export async function backlog(settings) {
  const { Attributes } = await clientOf(settings).send(
    new GetQueueAttributesCommand({ QueueUrl: settings.queueUrl, AttributeNames: ['All'] }),
  )
  const counts = ['', 'NotVisible', 'Delayed'].map((state) => Number(Attributes[`ApproximateNumberOfMessages${state}`]))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** One SQS for a test file, and queues on it. */
import { GetQueueAttributesCommand, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll } from 'vitest'
import type { Incoming, Message, Outcome, Source } from 'oncebox'
import type { PrivateService } from '../../../tools/services/process.mjs'
import { connect, start, type Settings } from './adapter.mjs'

/** Call it once, at the top of a test file. */
export function useService(): { readonly service: PrivateService; readonly client: SQSClient } {
  let service: PrivateService | undefined
  let client: SQSClient | undefined
  beforeAll(async () => {
    service = await start()
    client = connect(service.url)
  })
  afterAll(async () => {
    client?.destroy()
    await service?.stop()
  })
  return {
    get service() {
      return service!
    },
    get client() {
      return client!
    },
  }
}

export function event(id: string, fields: Partial<Message> = {}): Message {
  return {
    id,
    source: 'shop',
    type: 'order.placed',
    data: { id },
    headers: {},
    receivedAt: new Date(),
    attempt: 1,
    correlationId: id,
    ...fields,
  }
}

export function outcome(ack: boolean, id?: string): Outcome {
  return ack
    ? { id, ack, status: 'stored', consumers: [] }
    : { id, ack, status: 'failed', error: { name: 'Error', message: 'no' }, consumers: [] }
}

export interface Collected {
  readonly batches: readonly (readonly Incoming[])[]
  readonly messages: readonly Incoming[]
  readonly problems: readonly unknown[]
  /** When each batch came. */
  readonly times: readonly number[]
}

/** Starts a source whose box acknowledges everything, or what `judge` says. */
export async function collect(
  source: Source,
  judge: (batch: readonly Incoming[], turn: number) => Promise<Outcome[]> | Outcome[] = (batch) =>
    batch.map(({ id }) => outcome(true, id)),
): Promise<Collected> {
  const batches: (readonly Incoming[])[] = []
  const problems: unknown[] = []
  const times: number[] = []
  await source.start(
    async (batch) => {
      times.push(performance.now())
      return judge(batch, batches.push(batch))
    },
    (problem) => problems.push(problem),
  )
  return {
    ...{ batches, problems, times },
    get messages() {
      return batches.flat()
    },
  }
}

/** What another consumer would get now. */
export async function visible(client: SQSClient, { queueUrl }: Settings): Promise<string[]> {
  const command = new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 0 })
  const { Messages = [] } = await client.send(command)
  return Messages.map(({ Body = '' }) => Body)
}

/** How many somebody has received and neither deleted nor given back, or given back for later. */
export async function inFlight(client: SQSClient, { queueUrl }: Settings): Promise<number> {
  const name = 'ApproximateNumberOfMessagesNotVisible'
  const command = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [name] })
  return Number((await client.send(command)).Attributes?.[name])
}

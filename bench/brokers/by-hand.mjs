/**
 * Consumers as each client's own manual has them. `consume(settings, handle)` calls `handle(id)` for each message, as many at a
 * time as the broker hands out, acknowledges it when that is done, and answers how to stop.
 */
import { DeleteMessageCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import { jetstream } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { connect as connectRabbit } from 'amqplib'
import kafkajs from 'kafkajs'
import { createClient } from 'redis'
import { connect as connectSqs } from '../../test/brokers/sqs/adapter.mjs'

/** Messages that are not acknowledged, of a broker that counts them. */
const WINDOW = 256
/** SQS hands out ten for each request. */
const SQS_REQUESTS = 4

export const consume = {
  async rabbitmq({ url, queue }, handle) {
    const connection = await connectRabbit(url)
    const channel = await connection.createChannel()
    await channel.prefetch(WINDOW)
    await channel.consume(queue, async (message) => {
      await handle(message.properties.messageId)
      channel.ack(message)
    })
    return () => connection.close()
  },

  /** One message of each partition at a time. */
  async kafka({ url, topic, groupId, consumer: settings }, handle) {
    const client = new kafkajs.Kafka({ brokers: url.split(','), logLevel: kafkajs.logLevel.NOTHING })
    const consumer = client.consumer({ ...settings, groupId })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      partitionsConsumedConcurrently: 4,
      eachMessage: ({ message }) => handle(message.headers.ce_id.toString()),
    })
    return () => consumer.disconnect()
  },

  async nats({ url, stream, consumer: name }, handle) {
    const connection = await connectNats({ servers: url })
    const consumer = await jetstream(connection).consumers.get(stream, name)
    const messages = await consumer.consume({
      max_messages: WINDOW,
      callback: async (message) => {
        await handle(message.headers.get('ce-id'))
        message.ack()
      },
    })
    return async () => {
      await messages.close()
      await connection.close()
    }
  },

  async redis({ url, stream, group }, handle) {
    const client = createClient({ url })
    client.on('error', () => undefined)
    await client.connect()
    let stopped = false
    const reading = (async () => {
      while (!stopped) {
        const from = [{ key: stream, id: '>' }]
        const [read] = (await client.xReadGroup(group, 'bench', from, { COUNT: WINDOW, BLOCK: 200 })) ?? []
        const handleOne = async ({ id, message }) => {
          await handle(message.ce_id)
          await client.xAck(stream, group, id)
        }
        await Promise.all((read?.messages ?? []).map(handleOne))
      }
    })()
    return async () => {
      stopped = true
      await reading
      client.destroy()
    }
  },

  async sqs({ url, queueUrl: QueueUrl }, handle) {
    const client = connectSqs(url)
    let stopped = false
    const ask = { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: ['All'] }
    const read = async () => {
      while (!stopped) {
        const { Messages = [] } = await client.send(new ReceiveMessageCommand(ask))
        const handleOne = async ({ MessageAttributes, ReceiptHandle }) => {
          await handle(MessageAttributes.ce_id.StringValue)
          await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
        }
        await Promise.all(Messages.map(handleOne))
      }
    }
    const reading = Promise.all(Array.from({ length: SQS_REQUESTS }, read))
    return async () => {
      stopped = true
      await reading
      client.destroy()
    }
  },
}

/** A queue that Lambda polls: what it is told to deliver again. */
import { describe, expect, test } from 'vitest'
import { sqsLambda, type LambdaEvent, type LambdaRecord } from 'oncebox/sqs'
import { useServer } from '../../inbox/fixture.js'
import { outcome } from './open.js'

const server = useServer('sqs-lambda')

const SENT = new Date()
const ARN = 'arn:aws:sqs:eu-west-1:123456789012:orders'

function record(messageId: string, body: object, fields: Partial<LambdaRecord> = {}): LambdaRecord {
  const attributes = { ApproximateReceiveCount: '1', SentTimestamp: String(SENT.getTime()), SenderId: 'AIDA' }
  return {
    ...{ messageId, receiptHandle: 'r', body: JSON.stringify(body), attributes, messageAttributes: {} },
    eventSourceARN: ARN,
    ...fields,
  }
}

describe('sqsLambda', () => {
  test('names those that were not acknowledged, and hands on what the queue knows', async () => {
    const source = sqsLambda({ type: 'order.placed' })
    const seen: unknown[] = []
    await source.start(async (batch) => {
      seen.push(...batch)
      return batch.map(({ id }) => outcome(id !== 'm2', id))
    })
    const event: LambdaEvent = {
      Records: [
        record('m1', { n: 1 }, { messageAttributes: { tenant: { dataType: 'String', stringValue: 't1' } } }),
        record('m2', { n: 2 }, { attributes: { ApproximateReceiveCount: '2' } }),
        record('m3', { n: 3 }),
      ],
    }
    expect(await source.handle(event)).toEqual({ batchItemFailures: [{ itemIdentifier: 'm2' }] })
    expect(seen[0]).toMatchObject({
      ...{ id: 'm1', source: 'orders', type: 'order.placed', headers: { tenant: 't1' } },
      time: SENT,
    })
    expect(seen[0]).not.toHaveProperty('redelivered')
    expect(seen[1]).toMatchObject({ id: 'm2', redelivered: true })
  })

  test('in a FIFO queue the group is the key', async () => {
    const source = sqsLambda()
    const keys: unknown[] = []
    await source.start(async (batch) => {
      keys.push(...batch.map(({ key }) => key))
      return batch.map(({ id }) => outcome(true, id))
    })
    const attributes = { MessageGroupId: 'g1', MessageDeduplicationId: 'd1' }
    await source.handle({ Records: [record('m1', {}, { attributes, eventSourceARN: `${ARN}.fifo` })] })
    expect(keys).toEqual(['g1'])
  })

  test('what is delivered twice has one effect', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, 'once') }, { mode: 'inline' })
    const source = box.from(sqsLambda({ type: 'note' }))
    const event = { Records: [record('m1', { n: 1 })] }
    expect(await source.handle(event)).toEqual({ batchItemFailures: [] })
    expect(await source.handle(event)).toEqual({ batchItemFailures: [] })
    expect(await box.effects()).toEqual([{ consumer: 'a', id: 'm1', note: 'once' }])
  })

  test('rejects if the box does, so that Lambda keeps the whole batch', async () => {
    const source = sqsLambda()
    const event = { Records: [record('m1', {})] }
    await expect(source.handle(event)).rejects.toMatchObject({ code: 'STOPPED' })
    await source.start(() => Promise.reject(new Error('the database is away')))
    await expect(source.handle(event)).rejects.toThrow('the database is away')
  })
})

/** `oncebox/sqs`: a queue is a source and a sink, and its options are checked. */
import { type SQS, type SQSClient, type Message as SdkMessage } from '@aws-sdk/client-sqs'
import { describe, expectTypeOf, test } from 'vitest'
import type { Incoming, Sink, Source } from 'oncebox'
import { sqs, sqsLambda, type LambdaResponse, type SqsClient, type SqsMessage } from 'oncebox/sqs'

const queueUrl = 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders'

describe('sqs', () => {
  test('is a source and a sink', () => {
    expectTypeOf(sqs({ queueUrl })).toExtend<Source>()
    expectTypeOf(sqs({ queueUrl })).toExtend<Sink>()
  })

  test('takes the clients of the SDK, and nothing else', () => {
    expectTypeOf<SQSClient>().toExtend<SqsClient>()
    expectTypeOf<SQS>().toExtend<SqsClient>()
    expectTypeOf<SdkMessage>().toExtend<SqsMessage>()
    // @ts-expect-error -- a client sends
    sqs({ queueUrl, client: {} })
  })

  test('needs a queue, and knows its options', () => {
    // @ts-expect-error -- which queue?
    sqs({})
    // @ts-expect-error -- it is called pollers
    sqs({ queueUrl, poller: 2 })
    // @ts-expect-error -- there are two
    sqs({ queueUrl, mode: 'both' })
  })

  test('map and type see the message of the queue', () => {
    sqs({
      queueUrl,
      type: (raw) => raw.MessageAttributes?.['kind']?.StringValue,
      map(raw, message) {
        expectTypeOf(raw).toEqualTypeOf<SqsMessage>()
        expectTypeOf(message).toEqualTypeOf<Incoming>()
        return message
      },
    })
    // @ts-expect-error -- a message must come back
    sqs({ queueUrl, map: () => undefined })
  })
})

describe('sqsLambda', () => {
  test('is a source that is pushed to, and no sink', () => {
    expectTypeOf(sqsLambda()).toExtend<Source>()
    expectTypeOf(sqsLambda()).not.toExtend<Sink>()
    expectTypeOf(sqsLambda().handle).returns.resolves.toEqualTypeOf<LambdaResponse>()
  })
})

/** Options that are ill-typed or misspelt are refused where they are given, by name: nothing is taken for something else. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { kafka, type KafkaClient } from 'oncebox/kafka'
import { link } from 'oncebox/link'
import { nats } from 'oncebox/nats'
import { fromPg } from 'oncebox/pg'
import { rabbitmq } from 'oncebox/rabbitmq'
import { redis } from 'oncebox/redis'
import { sqs } from 'oncebox/sqs'
import { webhook } from 'oncebox/webhook'

type Given = Record<string, unknown>
const client = { consumer: () => undefined, producer: () => undefined } as unknown as KafkaClient
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const url = { kafka: '', rabbitmq: 'amqp://localhost', redis: 'redis://localhost', nats: 'nats://localhost' }

/** Each part that takes options, with those that it cannot do without. */
const PARTS = {
  'kafka source': (more: Given) => kafka({ client, groupId: 'g', topics: 't', ...more }),
  'kafka sink': (more: Given) => kafka({ client, topic: 't', ...more }),
  'rabbitmq source': (more: Given) => rabbitmq({ url: url.rabbitmq, queue: 'q', ...more }),
  'rabbitmq sink': (more: Given) => rabbitmq({ url: url.rabbitmq, exchange: 'e', ...more }),
  'redis source': (more: Given) => redis({ url: url.redis, stream: 's', group: 'g', ...more }),
  'redis sink': (more: Given) => redis({ url: url.redis, to: 's', ...more }),
  'nats source': (more: Given) => nats({ url: url.nats, stream: 's', consumer: 'c', ...more }),
  'nats sink': (more: Given) => nats({ url: url.nats, subject: 's', ...more }),
  sqs: (more: Given) => sqs({ queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders', ...more }),
  'webhook source': (more: Given) => webhook({ scheme: 'standard', secret, ...more } as never),
  'webhook sink': (more: Given) => webhook({ url: 'https://example.com', secret, ...more } as never),
  link: (more: Given) => link({ to: { receive: async () => [] }, ...more }),
  fromPg: (more: Given) => fromPg(new pg.Pool(), more),
}
type Part = keyof typeof PARTS

const refusal = (...words: string[]) =>
  expect.objectContaining({
    code: 'OPTION_INVALID',
    message: expect.stringMatching(new RegExp(words.map((word) => `(?=.*${word})`).join(''))),
  })

test.each(Object.keys(PARTS) as Part[])('%s takes what it cannot do without, and nothing else is needed', (part) => {
  expect(() => PARTS[part]({})).not.toThrow()
})

/** `Boolean('false')` is true: what comes from an environment variable must not pass for the opposite. */
test.each<[Part, string]>([
  ['kafka source', 'fromBeginning'],
  ['kafka sink', 'idempotent'],
  ['rabbitmq source', 'deadLetter'],
  ['rabbitmq sink', 'mandatory'],
  ['redis source', 'remove'],
  ['link', 'sameDatabase'],
  ['fromPg', 'prepare'],
])('%s refuses a text for %s, which is true or false', (part, option) => {
  expect(() => PARTS[part]({ [option]: 'false' })).toThrow(refusal(option, 'true or false', '"false"'))
  expect(() => PARTS[part]({ [option]: null })).toThrow(refusal(option, 'true or false', 'null'))
  expect(() => PARTS[part]({ [option]: true })).not.toThrow()
})

test.each<[Part, string, string]>([
  ['kafka source', 'batchSize', 'batch'],
  ['rabbitmq source', 'batchSize', 'batch'],
  ['sqs', 'batchSize', 'batch'],
  ['redis source', 'batchSize', 'batch'],
  ['nats source', 'batches', 'batch'],
  ['link', 'sameDataBases', 'sameDatabase'],
  ['link', 'nome', 'name'],
  ['webhook source', 'tolerance', 'toleranceMs'],
  ['webhook source', 'maxBuffered', 'maxBufferedBytes'],
  ['rabbitmq sink', 'routingkey', 'routingKey'],
])('%s refuses %s, and says %s', (part, wrong, right) => {
  expect(() => PARTS[part]({ [wrong]: 1 })).toThrow(refusal(`"${wrong}"`, `did you mean ${right}\\?`))
})

test.each<[Part, string]>([
  ['kafka source', 'batch'],
  ['rabbitmq source', 'batch'],
  ['redis source', 'batch'],
  ['nats source', 'batch'],
  ['sqs', 'batch'],
])('%s takes batch, the most messages of one delivery', (part, option) => {
  expect(() => PARTS[part]({ [option]: 10 })).not.toThrow()
  for (const wrong of [0, 1.5, '10', null, NaN]) {
    const got = typeof wrong === 'string' ? `"${wrong}"` : String(wrong)
    expect(() => PARTS[part]({ [option]: wrong })).toThrow(refusal(`${option} must be a whole number`, 'from 1', got))
  }
})

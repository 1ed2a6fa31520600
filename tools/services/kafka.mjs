/**
 * A private Kafka: one node in KRaft mode, on the loopback address alone. Debian has no Kafka, so its jars come from
 * Maven's central repository; where that cannot be had, a mock of the protocol has to do, and says so. Types are in
 * kafka.d.mts.
 */
import { startBroker } from './kafka/broker.mjs'
import { findOrFetchJars, VERSION } from './kafka/jars.mjs'
import { startMock } from './kafka/mock.mjs'
import { givenService } from './process.mjs'

export const name = 'kafka'
export const variable = 'KAFKA_BROKERS'

/** What `start` would start: the one that is given, a real one, or the mock. */
export async function kindOf() {
  if (process.env[variable]) return 'given'
  return (await findJars()).directory ? 'installed' : 'mock'
}

export async function start() {
  const given = process.env[variable]
  if (given) return givenService({ name, variable, url: given, version: 'unknown' })
  const { directory, problem } = await findJars()
  if (directory) return startBroker({ name, variable, version: VERSION, jars: directory })
  try {
    return await startMock({ variable })
  } catch (error) {
    throw new Error(
      [
        'this needs Kafka, or a mock of it. Do one of:',
        '  apt-get install openjdk-17-jre-headless maven, where the central repository can be reached',
        '  apt-get update && apt-get install --no-install-recommends librdkafka1, for the mock',
        `  docker compose up, and set ${variable} as compose.yaml says`,
        `  set ${variable} to a running one`,
        `  tried: ${problem}; ${error.message}`,
      ].join('\n'),
      { cause: error },
    )
  }
}

/** ONCEBOX_KAFKA=mock asks for the mock where the real one can be had. */
async function findJars() {
  return process.env.ONCEBOX_KAFKA === 'mock' ? { problem: 'the mock was asked for' } : findOrFetchJars()
}

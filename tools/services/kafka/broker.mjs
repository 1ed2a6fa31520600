/** One node, broker and controller in one process. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import kafkajs from 'kafkajs'
import { freePorts } from '../ports.mjs'
import { accepts, startProcess, startService } from '../process.mjs'

const run = promisify(execFile)

/** For a broker that lives for a minute: little memory, and no time spent on compiling well. */
const JAVA = ['-Xms64m', '-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']

export async function startBroker({ name, variable, version, jars }) {
  const [port, controllerPort] = await freePorts(2)
  const url = `127.0.0.1:${port}`
  const java = (main, ...args) => [...JAVA, '-cp', path.join(jars, '*'), main, ...args]
  return startService({
    name,
    variable,
    kind: 'installed',
    version,
    url,
    async prepare(directory) {
      const file = path.join(directory, 'server.properties')
      await writeFile(file, properties(directory, port, controllerPort))
      // Never with a dash in front, which would be an option.
      const cluster = Buffer.concat([Buffer.alloc(1), randomBytes(15)]).toString('base64url')
      await run('java', java('kafka.tools.StorageTool', 'format', '-t', cluster, '-c', file), { timeout: 60_000 })
    },
    launch: (directory) =>
      startProcess({
        command: 'java',
        args: java('kafka.Kafka', path.join(directory, 'server.properties')),
        directory,
        ready: async () => (await accepts(port)) && answers(url),
      }),
  })
}

function properties(directory, port, controllerPort) {
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': path.join(directory, 'data'),
    'auto.create.topics.enable': false,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 1,
    // A group is formed at once, and a member that was killed is missed after a few seconds.
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1_000,
    'controlled.shutdown.enable': false,
    // Its own controller fences a broker that it has not heard of for so long: then there is nobody to put a topic on. On a busy machine
    // a second is soon over. A broker that was killed is let in again only after that, so it is not more.
    'broker.session.timeout.ms': 6_000,
    'broker.heartbeat.interval.ms': 200,
    'controller.quorum.election.timeout.ms': 200,
    'controller.quorum.election.backoff.max.ms': 200,
    'controller.quorum.fetch.timeout.ms': 500,
    'num.network.threads': 2,
    'num.io.threads': 2,
    'log.cleaner.dedupe.buffer.size': 4_194_304,
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

/** It listens before it is a member of its own cluster, and is that before it has read what groups have committed. */
export async function answers(url) {
  const client = new kafkajs.Kafka({
    brokers: [url],
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 2_000,
    retry: { retries: 0 },
  })
  const admin = client.admin()
  try {
    await admin.connect()
    const { brokers } = await admin.describeCluster()
    await admin.fetchOffsets({ groupId: 'ready' })
    return brokers.length > 0
  } catch {
    return false
  } finally {
    await admin.disconnect().catch(() => {})
  }
}

/**
 * Kafka as a source: a member of a consumer group that commits offsets after the box has committed.
 *
 * The client keeps the connection for as long as it can. When it gives up, the source says so and opens another
 * consumer, again and again, until it is stopped.
 */
import { sleep } from '../../backoff.js'
import { beginTurn } from '../../lifecycle.js'
import { createReopening } from '../reopening.js'
import { createReports, createRunner, type Receiver, type Run } from '../run.js'
import type { Deliver, Source } from '../source.js'
import { isKafkajs, type KafkaConsumer } from './client.js'
import { openConfluent } from './confluent.js'
import { openKafkajs } from './kafkajs.js'
import { createLosses } from './losses.js'
import type { ResolvedSource } from './options.js'
import { createPartitions, type Partitions } from './partitions.js'

/** A consumer that has lasted for so long works: to join its group takes seconds. */
const LASTING_MS = 10_000

/** A consumer in its group. */
interface Membership {
  readonly consumer: KafkaConsumer
  readonly partitions: Partitions
  /** Resolves with the reason when the client gives up. */
  readonly crashed: Promise<unknown>
}

export function createSource(options: ResolvedSource): Source {
  return createRunner(`kafka:${options.topics.map(String).join(',')}`, async (box) => begin(options, box))
}

function begin(options: ResolvedSource, box: Receiver): Run {
  /** To have joined is not enough to tell of the return: a consumer that cannot read what it is given crashes at once. */
  const { tell, tellPassing } = createReports(box.report)
  const losses = createLosses(options, { tellPassing, warn: box.warn })
  const reopening = createReopening({ firstMs: 100, mostMs: 5_000, lastingMs: LASTING_MS })
  const turn = beginTurn()
  /** Undefined until it has joined. */
  let life: Promise<void> | undefined
  let partitions: Partitions | undefined

  const deliver: Deliver = (batch) => {
    tell()
    return box.deliver(batch)
  }

  const join = async (): Promise<Membership> => {
    let crash: (error: unknown) => void = () => undefined
    const crashed = new Promise<unknown>((resolve) => (crash = resolve))
    const own = (partitions = createPartitions(options, deliver, losses))
    const { eachBatch, joined, left } = own
    const open = isKafkajs(options.client) ? openKafkajs : openConfluent
    try {
      await losses.foresee()
      return {
        consumer: await open(options.client, options, { eachBatch, joined, left, crashed: crash }),
        partitions: own,
        crashed,
      }
    } catch (error) {
      own.close()
      throw error
    }
  }

  const joinAgain = async (): Promise<Membership | undefined> => {
    while (turn.goesOn()) {
      await sleep(reopening.waitMs(), turn.over)
      if (!turn.goesOn()) break
      try {
        return await join()
      } catch (error) {
        tell(error)
      }
    }
    return undefined
  }

  const live = async (first: Membership): Promise<void> => {
    for (let member: Membership | undefined = first; member;) {
      const { consumer, partitions, crashed } = member
      reopening.opened()
      const lasting = setTimeout(() => tell(), LASTING_MS)
      const error = await Promise.race([crashed, turn.over])
      clearTimeout(lasting)
      reopening.lost()
      partitions.close()
      await partitions.finish()
      await consumer.disconnect().catch(() => undefined)
      if (!turn.goesOn()) return
      tell(error)
      member = await joinAgain()
    }
  }

  return {
    started: join().then((member) => void (life = live(member))),
    async end() {
      turn.end()
      partitions?.close()
      // A join that is under way is not waited for: it delivers nothing any more, and ends when it learns of this.
      await life
    },
  }
}

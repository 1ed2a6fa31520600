/** What a link inside the database needs of the box that it moves events into. */
import type { InboxTarget } from '../brokers/handover.js'
import type { Runtime } from '../runtime.js'
import { asReceiverSeesIt, type ConsumerDeclaration } from './consumer.js'

export function createTarget(
  { db, metrics }: Runtime,
  declared: () => readonly ConsumerDeclaration[],
  wake: () => void,
): InboxTarget {
  return {
    driver: db.driver,
    schema: db.bind('ob.').slice(0, -1),
    consumers: () => {
      const consumers = declared()
      return consumers.some((one) => one.options.identity) ? undefined : consumers.map(asReceiverSeesIt)
    },
    wake,
    arrived: (count) => metrics.moved(count),
  }
}

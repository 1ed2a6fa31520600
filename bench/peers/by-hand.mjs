/**
 * The limit: the same by hand, 4 connections. `groups`: claims of 100, one transaction for each; `together`: its statements
 * in one packet; `many`: one statement for 1 000 messages. See ../limit.mjs for what it does and what it does not.
 */
import { Limit } from '../limit.mjs'

export async function open({ url, shape, work, handled }) {
  const limit = new Limit(url, { effect: work })
  await limit.open(4)
  const drain = {
    groups: (total) => limit.drainGroups(4, total, { claim: 100, group: 100 }),
    together: (total) => limit.drainTogether(4, total, { claim: 300, group: 300 }),
    many: (total) => limit.drainBatches(4, total, 1_000),
  }[shape]
  return {
    tables: limit.tables,
    left: 'exists (select from lim.work)',
    store: (messages, many) => limit.receive(messages, { inFlight: many }),
    storeOne: (message) => limit.receiveOne(message),
    async start({ length }) {
      await drain(length)
      handled(length)
    },
    pause: async () => undefined,
    close: () => limit.end(),
  }
}

/** Routing by key: one front door, one source, one link in front of many boxes. */
import { link } from 'oncebox/link'

/**
 * @typedef {import('oncebox').Incoming} Incoming
 * @typedef {import('oncebox').Outcome} Outcome
 * @typedef {(key: string) => number} Route which box a key belongs to
 * @typedef {{ receive(messages: readonly Incoming[]): Promise<readonly Outcome[]> }} Receiver
 * @typedef {Receiver & { from(source: import('oncebox').Source, options?: any): unknown }} Attachable
 */

/** How long what could not be delivered to a server waits. */
const AWAY_MS = 1_000

/**
 * `receive` for messages of any box, with an outcome for each in the order of the list. What belongs to a server that
 * is away is `busy`: hand it in again. The others are not kept waiting for it.
 * @param {readonly Receiver[]} boxes
 * @param {Route} route
 * @returns {(messages: readonly Incoming[]) => Promise<Outcome[]>}
 */
export function spreadReceive(boxes, route) {
  return (messages) =>
    inParts(messages, route, async (part, shard) => {
      const box = /** @type {Receiver} */ (boxes[shard])
      return box.receive(part).catch((error) => busy(part, error))
    })
}

/**
 * A source for many boxes: `box.from(source, options)` for all of them, by the key of each message. Declare consumers
 * and migrate first, and start the source that this answers.
 * @param {readonly Attachable[]} boxes
 * @param {import('oncebox').Source} source
 * @param {{ route: Route, from?: Parameters<Attachable['from']>[1] }} options
 */
export function spreadSource(boxes, source, { route, from }) {
  /** @type {import('oncebox').Deliver[]} */
  const deliver = []
  const { name, replayMs, fingerprint } = source
  boxes.forEach((box, shard) => {
    /** @type {import('oncebox').Source} */
    const part = {
      ...(name !== undefined && { name }),
      ...(replayMs !== undefined && { replayMs }),
      ...(fingerprint !== undefined && { fingerprint }),
      // Attached at once, whether or not this process starts the box; a real push source has to say its types.
      push: true,
      broker: source.push !== true || source.broker === true,
      start: async (own) => void (deliver[shard] = own),
      stop: async () => {},
    }
    box.from(part, from)
  })
  const deliverTo = /** @type {import('oncebox').Deliver} */ (
    (batch) =>
      inParts(batch, route, async (part, shard) => {
        const own = /** @type {import('oncebox').Deliver} */ (deliver[shard])
        return own(part).catch((error) => busy(part, error))
      })
  )
  return { start: () => source.start(deliverTo), stop: () => source.stop() }
}

/**
 * A link to many boxes: each event goes to the box of its key.
 * @param {readonly Receiver[]} boxes
 * @param {Route} route
 * @returns {import('oncebox').Sink & { name: string }}
 */
export function spreadLink(boxes, route) {
  const links = boxes.map((to) => link({ to }))
  return {
    name: 'boxes',
    publish: (batch) =>
      inParts(batch, route, async (part, shard) => {
        const one = /** @type {import('oncebox').Sink} */ (links[shard])
        // Without `afterMs` an event would be blamed: the servers that are there take others meanwhile.
        return one
          .publish(part)
          .catch((error) => part.map(() => ({ error, retry: true, down: true, afterMs: AWAY_MS })))
      }),
    async close() {},
  }
}

/**
 * Splits a list by box, lets `work` answer for each part, all at a time, and puts the answers back into the order of the list.
 * @template {{ id: string | undefined, key?: string }} M
 * @template A
 * @param {readonly M[]} list
 * @param {Route} route
 * @param {(part: M[], shard: number) => Promise<readonly A[]>} work
 * @returns {Promise<A[]>}
 */
async function inParts(list, route, work) {
  /** @type {Map<number, number[]>} */
  const places = new Map()
  list.forEach(({ id, key }, place) => {
    // Copies have the same id. A message that has none is kept in quarantine, of whichever box.
    const shard = route(key ?? id ?? '')
    places.set(shard, [...(places.get(shard) ?? []), place])
  })
  /** @type {A[]} */
  const answers = new Array(list.length)
  await Promise.all(
    [...places].map(async ([shard, own]) => {
      const part = await work(
        own.map((place) => /** @type {M} */ (list[place])),
        shard,
      )
      own.forEach((place, index) => (answers[place] = /** @type {A} */ (part[index])))
    }),
  )
  return answers
}

/** @param {readonly Incoming[]} part @param {unknown} _error which the box has told of @returns {Outcome[]} */
function busy(part, _error) {
  const retryAt = new Date(Date.now() + AWAY_MS)
  return part.map(({ id }) => ({ id, status: 'busy', ack: false, consumers: [], retryAt }))
}

/**
 * The link: an unreliable broker between the order service and the two services behind it. It lives in the demo's own
 * process, which is never killed, and delivers at least once, as brokers do:
 *
 * - it duplicates some events, delays each copy by a time of its own, and thereby reorders them;
 * - it delivers again what a worker had not acknowledged when it died.
 *
 * Each copy goes, at the same moment, to a worker of oncebox and to one of the naive side: both see the same traffic.
 */
import { dice } from './dice.mjs'

export const SERVICES = ['inventory', 'payment']
export const SIDES = ['naive', 'oncebox']

/** So many deliveries may be with one worker and not acknowledged. */
const PREFETCH = 20
const REFUSED_AGAIN_MS = 50

export class Link {
  #seed
  #underway = 0
  /** How often each event was published: a relay that dies after publishing publishes again. */
  #published = new Map()
  #queues = Object.fromEntries(
    SIDES.map((side) => [side, Object.fromEntries(SERVICES.map((service) => [service, new Queue()]))]),
  )

  constructor(seed) {
    this.#seed = seed
  }

  /** The events it has seen. */
  get events() {
    return this.#published.size
  }

  /** What each worker of that side and service takes its deliveries from. */
  queue(side, service) {
    return this.#queues[side][service]
  }

  deliveries(side) {
    return SERVICES.reduce((sum, service) => sum + this.queue(side, service).delivered, 0)
  }

  /** True when everything is delivered and acknowledged. */
  get idle() {
    if (this.#underway > 0) return false
    return SIDES.every((side) => SERVICES.every((service) => this.queue(side, service).open === 0))
  }

  publish(events) {
    for (const event of events) {
      const times = (this.#published.get(event.id) ?? 0) + 1
      this.#published.set(event.id, times)
      for (const service of SERVICES) {
        const roll = dice(this.#seed, 'link', service, event.id, times)
        for (let copies = howMany(roll); copies > 0; copies--) this.#carry(service, event, howLate(roll))
      }
    }
  }

  #carry(service, event, delayMs) {
    this.#underway++
    setTimeout(() => {
      this.#underway--
      for (const side of SIDES) this.queue(side, service).push(event)
    }, delayMs)
  }
}

/** One event in seven arrives twice, one in a hundred three times. */
function howMany(roll) {
  const chance = roll()
  return chance < 0.01 ? 3 : chance < 0.15 ? 2 : 1
}

/** Most copies are quick; some are overtaken by a hundred others. */
function howLate(roll) {
  const chance = roll()
  return chance < 0.8 ? roll() * 30 : chance < 0.97 ? roll() * 400 : 500 + roll() * 1500
}

/** The deliveries of one service: waiting, or with a worker and not acknowledged. */
class Queue {
  /** Deliveries handed to a worker so far. */
  delivered = 0
  #last = 0
  #waiting = []
  #refused = 0
  /** A worker's end of the link → what it has not acknowledged, by number. */
  #workers = new Map()

  get open() {
    let open = this.#waiting.length + this.#refused
    for (const held of this.#workers.values()) open += held.size
    return open
  }

  push(event) {
    this.#waiting.push({ event, redelivered: false })
    this.#handOut()
  }

  /** Gives a worker its share from now on. `port` is our end of the channel to it. */
  attach(port) {
    this.#workers.set(port, new Map())
    port.listen(({ settle, ack }) => {
      if (settle !== undefined) this.#settle(port, settle, ack)
    })
    this.#handOut()
  }

  /** The worker is dead. What it had not acknowledged, it may or may not have done: somebody else gets it. */
  detach(port) {
    const held = this.#workers.get(port)
    if (!held) return
    this.#workers.delete(port)
    this.#waiting.unshift(...[...held.values()].map(({ event }) => ({ event, redelivered: true })))
    this.#handOut()
  }

  #settle(port, number, ack) {
    const held = this.#workers.get(port)
    const delivery = held?.get(number)
    if (!delivery) return
    held.delete(number)
    if (!ack) {
      this.#refused++
      setTimeout(() => {
        this.#refused--
        this.#waiting.push(delivery)
        this.#handOut()
      }, REFUSED_AGAIN_MS)
    }
    this.#handOut()
  }

  #handOut() {
    while (this.#waiting.length > 0) {
      const [port, held] = this.#leastBusy() ?? []
      if (!port) return
      const delivery = this.#waiting.shift()
      const number = ++this.#last
      held.set(number, delivery)
      this.delivered++
      port.post({ deliver: number, ...delivery })
    }
  }

  #leastBusy() {
    let best
    for (const entry of this.#workers) {
      if (entry[1].size < PREFETCH && (!best || entry[1].size < best[1].size)) best = entry
    }
    return best
  }
}

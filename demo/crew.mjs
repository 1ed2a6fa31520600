/**
 * The crew: two worker processes for each service and side, and the order service. `kill` ends one with SIGKILL, and
 * its twin on the other side at the same moment; each is replaced at once.
 */
import { dice } from './dice.mjs'
import { SERVICES, SIDES } from './link.mjs'
import { start } from './processes.mjs'

const WORKERS_PER_SERVICE = 2

export class Crew {
  /** So many orders at least between one kill and the next: a process takes a moment to start. */
  pause = 60
  /** How often somebody was killed; a worker and its twin count as one. */
  kills = 0
  /** All processes that were killed. */
  killed = 0
  /** Rejects if a process ends that nobody has killed. */
  broken
  #break
  #link
  #env
  #roll
  #closed = false
  #rotation = []
  /** Place → the process that works there at the moment. */
  #staff = new Map()

  constructor({ link, seed, settings }) {
    this.#link = link
    this.#env = { ONCEBOX_DEMO: JSON.stringify(settings) }
    this.#roll = dice(seed, 'kills')
    this.broken = new Promise((_, reject) => (this.#break = reject))
    this.broken.catch(() => {})
  }

  async open() {
    const places = SIDES.flatMap((side) => SERVICES.flatMap((service) => numbered(`${side} ${service}`)))
    await Promise.all([...places, 'orders'].map((place) => this.#hire(place)))
  }

  kill() {
    if (this.#rotation.length === 0) this.#rotation = this.#shuffledVictims()
    const victim = this.#rotation.pop()
    const places = victim === 'orders' ? ['orders'] : SIDES.map((side) => `${side} ${victim}`)
    const hit = places.filter((place) => this.#staff.get(place).kill())
    this.killed += hit.length
    if (hit.length > 0) this.kills++
  }

  async close() {
    this.#closed = true
    await Promise.all(
      [...this.#staff.values()].map((worker) => {
        worker.kill()
        return worker.ended
      }),
    )
  }

  /** Everybody in turn, in an order of chance, so that each is killed about equally often. */
  #shuffledVictims() {
    const victims = ['orders', ...SERVICES.flatMap((service) => numbered(service))]
    return victims.map((victim) => [this.#roll(), victim]).sort(([a], [b]) => a - b).map(([, victim]) => victim) // prettier-ignore
  }

  async #hire(place) {
    const [side, service] = place.split(' ')
    const worker = start('./worker.mjs', place.split(' '), this.#env)
    this.#staff.set(place, worker)
    const queue = service && this.#link.queue(side, service)
    if (!queue) this.#takeEvents(worker.port)
    worker.ended.then(({ code, signal }) => {
      if (this.#closed) return
      queue?.detach(worker.port)
      if (signal === 'SIGKILL') void this.#hire(place)
      else this.#break(new Error(`worker ${place} ended by itself (${signal ?? `exit code ${code}`})`))
    })
    const ready = await worker.ready.catch(() => undefined)
    if (ready) queue?.attach(worker.port)
  }

  #takeEvents(port) {
    port.listen(({ publish, events }) => {
      if (publish === undefined) return
      this.#link.publish(events)
      port.post({ confirm: publish })
    })
  }
}

function numbered(name) {
  return Array.from({ length: WORKERS_PER_SERVICE }, (_, number) => `${name} ${number + 1}`)
}

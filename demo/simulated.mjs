/**
 * The crew on PGlite: one process, so nobody can be killed. Instead the flow is crashed at named points, by the test kit
 * that you can use in your own tests: it lets go of everything, as if the process had died there.
 */
import { crashAt } from 'oncebox/testing'
import { dice } from './dice.mjs'
import { portPair } from './ends.mjs'
import { SERVICES } from './link.mjs'
import { startNaive } from './naive.mjs'
import { startOrders } from './orders.mjs'
import { startService } from './services.mjs'

const POINTS = ['received', 'claimed', 'opened', 'handled', 'settled', 'committed', 'intended', 'called']

export class SimulatedCrew {
  pause = 20
  kills = 0
  killed = 0
  broken = new Promise(() => {})
  #link
  #context
  #roll
  #naiveDies = false
  #boxes = []

  constructor({ link, seed, settings, db }) {
    this.#link = link
    this.#roll = dice(seed, 'kills')
    this.#context = { ...settings, db }
  }

  async open() {
    for (const service of SERVICES) {
      startNaive(service, { ...this.#context, port: this.#connect('naive', service) }, () => this.#naiveMayDie())
      const context = { ...this.#context, port: this.#connect('oncebox', service) }
      this.#boxes.push(await startService(service, context))
    }
    const [ours, theirs] = portPair()
    ours.listen(({ publish, events }) => {
      if (publish === undefined) return
      this.#link.publish(events)
      ours.post({ confirm: publish })
    })
    const started = new Promise((resolve) => ours.listen(({ ready }) => ready && resolve()))
    const placed = startOrders({ ...this.#context, port: theirs }).then((box) => this.#boxes.push(box))
    this.broken = placed.then(() => new Promise(() => {}))
    await Promise.race([started, this.broken])
  }

  kill() {
    this.kills++
    this.killed += 2
    this.#naiveDies = true
    crashAt(POINTS[Math.floor(this.#roll() * POINTS.length)])
  }

  async close() {
    await Promise.all(this.#boxes.map((box) => box.stop({ timeoutMs: 2_000 })))
  }

  #connect(side, service) {
    const [ours, theirs] = portPair()
    this.#link.queue(side, service).attach(ours)
    return theirs
  }

  #naiveMayDie() {
    if (!this.#naiveDies) return
    this.#naiveDies = false
    throw new Error('simulated crash')
  }
}

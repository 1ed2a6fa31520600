/**
 * What this process says of its sinks, so that senders and relays of other processes know them: before anything is published,
 * and again and again while it runs, for a process that nobody has heard of for a while counts as gone.
 */
import { randomUUID } from 'node:crypto'
import { plainWords } from '../failure.js'
import { SEEN_EVERY_MS } from '../figures.js'
import type { Differing } from '../postgres/sql/sinks.js'
import { processName } from '../process-name.js'
import type { Runtime } from '../runtime.js'
import { reclaim, registerSinks, retireSinks } from './assign.js'
import type { Attached } from './options.js'

export class Registration {
  readonly #runtime: Runtime
  readonly #attached: () => readonly Attached[]
  readonly #self = { id: randomUUID(), host: processName() }
  /** Names of the sinks that the database has heard of since the last stop. */
  readonly #registered = new Set<string>()
  /** When it was said last, by the clock of this process. */
  #saidAt = -Infinity
  /** Under way, for all relays that wait for it. */
  #saying: Promise<void> | undefined
  readonly #warned = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(runtime: Runtime, attached: () => readonly Attached[]) {
    this.#runtime = runtime
    this.#attached = attached
  }

  async register(): Promise<void> {
    const sinks = this.#attached()
    await this.#say(sinks, 'look again')
    for (const { name } of sinks) this.#registered.add(name)
  }

  /**
   * The same if there is a sink that was attached late, or while the database was away. And where nothing keeps saying it, as in a
   * process that only drains: such a process would count as gone, and its sinks could be removed under it.
   */
  async ensure(): Promise<void> {
    if (this.#attached().some(({ name }) => !this.#registered.has(name))) return this.register()
    if (this.#timer !== undefined || performance.now() - this.#saidAt < SEEN_EVERY_MS) return
    this.#saying ??= this.#sayAgain(() => false).finally(() => (this.#saying = undefined))
    await this.#saying
  }

  /** Says from time to time that this process is still there. */
  keepSaying(isOver: () => boolean): void {
    this.#timer ??= setInterval(() => void this.#sayAgain(isOver), SEEN_EVERY_MS).unref()
  }

  saysNoMore(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The process stops, and its sinks want nothing more by its word. Never rejects: it would be gone after a while anyway. */
  async retire(): Promise<void> {
    if (this.#registered.size > 0) await retireSinks(this.#runtime, this.#self).catch(() => undefined)
  }

  forget(): void {
    this.#registered.clear()
  }

  /** If it cannot be said, the next time will do. */
  async #sayAgain(isOver: () => boolean): Promise<void> {
    try {
      await this.#say(this.#attached(), 'go on')
      await reclaim(this.#runtime, isOver)
    } catch (error) {
      this.#runtime.log.debug({ error: plainWords(error) }, 'sinks could not be registered again')
    }
  }

  async #say(sinks: readonly Attached[], again: 'look again' | 'go on'): Promise<void> {
    const asked = performance.now()
    const differing = await registerSinks(this.#runtime, this.#self, sinks, again)
    this.#saidAt = asked
    for (const one of differing) this.#warn(one)
  }

  #warn({ sink, host, types }: Differing): void {
    const ours = this.#attached().find(({ name }) => name === sink)?.options.types ?? null
    const what = JSON.stringify([sink, host, types])
    if (this.#warned.has(what)) return
    this.#warned.add(what)
    const rule = 'events of either go to it while both run; make them agree'
    this.#runtime.log.warn(
      { sink, types: ours ?? 'all', host, others: types ?? 'all' },
      `processes differ in what a sink wants; ${rule}`,
    )
  }
}

/**
 * Presence: while anything of a box runs, its process says again and again which consumers it runs, so that nobody removes one
 * under it, and what its consumers promise to receivers, who go by it as long as it does. The first is a courtesy to people, and
 * the second is not: a word that lapses while its process runs would let receivers store what it would not have taken. So neither
 * waits for anything else that the box does.
 */
import { randomUUID } from 'node:crypto'
import { sleep } from '../backoff.js'
import { GONE_MS, SEEN_EVERY_MS } from '../figures.js'
import { processName } from '../process-name.js'
import { LEFT, SEEN } from '../postgres/sql/consumers.js'
import { readableError } from '../readable.js'
import type { Runtime } from '../runtime.js'
import type { ConsumerDeclaration } from './consumer.js'
import { register, renew } from './registry.js'
import { isAway } from './transaction.js'

/** So often, of the times that a process is seen, it renews its word: once a minute. */
const RENEWED_EVERY = 3

export interface Presence {
  /** The box has started. Resolves when that has been written down, or could not be: the next time will do. */
  start(): Promise<void>
  /** Says so at once, if anything runs: a consumer was added, or started by itself. */
  seen(): Promise<void>
  /** A consumer was stopped by itself. */
  left(): Promise<void>
  stop(timeoutMs: number): Promise<void>
}

/** The consumers of a box. */
export interface Present {
  /** Those that its process runs once the box is started. */
  all(): readonly ConsumerDeclaration[]
  /** Those whose loops run, whether the box is started or not. */
  alive(): readonly ConsumerDeclaration[]
  /** Those that it makes promises for. */
  declared(): readonly ConsumerDeclaration[]
}

/** How long the stop of a consumer waits until it has been written down. */
const LEFT_MS = 2_000

export function createPresence(runtime: Runtime, { all, alive, declared }: Present): Presence {
  const self = { process: randomUUID(), host: processName() }
  let started = false
  let timer: NodeJS.Timeout | undefined
  let ticks = 0
  let saying: Promise<void> = Promise.resolve()
  let promising: Promise<void> = Promise.resolve()
  /** The consumers that others were told of. */
  const said = new Set<string>()

  const here = (): readonly ConsumerDeclaration[] => (started ? [...new Set([...all(), ...alive()])] : alive())
  const say = async (): Promise<void> => {
    const running = here()
    if (running.length === 0) return
    for (const { name } of running) said.add(name)
    const given = { ...self, consumers: running.map(({ name }) => name), goneMs: GONE_MS }
    try {
      const removed = (await runtime.db.run(SEEN, given)).map(({ name }) => name)
      if (removed.length > 0) await comeBack(runtime, running.filter(({ name }) => removed.includes(name))) // prettier-ignore
    } catch {
      // Whatever else needs the database tells that it is away.
    }
  }
  const promise = async (): Promise<void> => {
    try {
      if (timer) await renew(runtime, declared())
    } catch (error) {
      if (!isAway(error)) warnOfLapse(runtime, error)
    }
  }
  /** Those that do not run any more. */
  const leave = async (): Promise<void> => {
    const running = new Set(here().map(({ name }) => name))
    const gone = [...said].filter((name) => !running.has(name))
    for (const name of gone) said.delete(name)
    if (gone.length > 0) await runtime.db.run(LEFT, { process: self.process, consumers: gone }).catch(() => [])
  }
  const next = (step: () => Promise<void>): Promise<void> => (saying = saying.then(step))
  const rest = (): void => {
    clearInterval(timer)
    timer = undefined
  }
  const tick = (): void => {
    void next(say)
    if (ticks++ % RENEWED_EVERY === 0) promising = promising.then(promise)
  }

  const seen = async (): Promise<void> => {
    if (!started && alive().length === 0) return
    timer ??= setInterval(tick, SEEN_EVERY_MS).unref()
    await next(say)
  }
  return {
    start() {
      started = true
      return seen()
    },
    seen,
    async left() {
      if (!started && alive().length === 0) rest()
      if (said.size > 0) await sleep(LEFT_MS, next(leave))
    },
    async stop(timeoutMs) {
      started = false
      rest()
      if (said.size > 0) await sleep(timeoutMs, next(leave))
    },
  }
}

function warnOfLapse(runtime: Runtime, error: unknown): void {
  const text = 'what its consumers promise to receivers could not be renewed, and holds for five minutes'
  runtime.warnOnce('renew', { error: readableError(error).message }, text)
}

/** Somebody removed a consumer while this process stood still. It runs it, so others have to store messages for it again. */
async function comeBack(runtime: Runtime, removed: readonly ConsumerDeclaration[]): Promise<void> {
  await register(runtime, removed)
  for (const { name } of removed) {
    const text = `consumer ${name} was removed, and runs here: it is registered again; what came meanwhile was not stored for it`
    runtime.log.warn({ consumer: name }, text)
  }
}

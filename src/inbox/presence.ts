/**
 * Presence: a process says again and again which consumers it runs, so that nobody removes one under it. It is a courtesy to
 * people: what a consumer holds and has handled is safe without it.
 */
import { randomUUID } from 'node:crypto'
import { sleep } from '../backoff.js'
import { GONE_MS, SEEN_EVERY_MS } from '../figures.js'
import { processName } from '../process-name.js'
import { LEFT, SEEN } from '../postgres/sql/consumers.js'
import type { Runtime } from '../runtime.js'
import type { ConsumerDeclaration } from './consumer.js'
import { register } from './registry.js'

export interface Presence {
  /** Resolves when it has been written down, or could not be: the next time will do. */
  start(): Promise<void>
  /** Says so at once: a consumer was added. */
  seen(): Promise<void>
  stop(timeoutMs: number): Promise<void>
}

export function createPresence(runtime: Runtime, consumers: () => readonly ConsumerDeclaration[]): Presence {
  const self = { process: randomUUID(), host: processName() }
  let timer: NodeJS.Timeout | undefined
  let saying: Promise<void> = Promise.resolve()

  const say = async (): Promise<void> => {
    const declared = consumers()
    if (declared.length === 0) return
    const given = { ...self, consumers: declared.map(({ name }) => name), goneMs: GONE_MS }
    try {
      const removed = (await runtime.db.run(SEEN, given)).map(({ name }) => name)
      if (removed.length > 0) await comeBack(runtime, declared.filter(({ name }) => removed.includes(name))) // prettier-ignore
    } catch {
      // Whatever else needs the database tells that it is away.
    }
  }
  const seen = (): Promise<void> => (timer ? (saying = saying.then(say)) : Promise.resolve())
  return {
    async start() {
      if (timer) return
      timer = setInterval(() => void seen(), SEEN_EVERY_MS)
      timer.unref()
      await seen()
    },
    seen,
    async stop(timeoutMs) {
      if (!timer) return
      clearInterval(timer)
      timer = undefined
      const named = consumers().map(({ name }) => name)
      const left = saying
        .then(() => runtime.db.run(LEFT, { process: self.process, consumers: named }))
        .catch(() => undefined)
      await sleep(timeoutMs, left)
    },
  }
}

/** Somebody removed a consumer while this process stood still. It runs it, so others have to store messages for it again. */
async function comeBack(runtime: Runtime, removed: readonly ConsumerDeclaration[]): Promise<void> {
  await register(runtime, removed)
  for (const { name } of removed) {
    const text = `consumer ${name} was removed, and runs here: it is registered again; what came meanwhile was not stored for it`
    runtime.log.warn({ consumer: name }, text)
  }
}

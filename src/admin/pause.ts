/** Pauses and resumes a consumer, in all processes: claims look at the row that this writes. */
import { nearest } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { SET_PAUSED } from '../postgres/sql/admin.js'
import type { Runtime } from '../runtime.js'
import { audit } from './bulk.js'

export interface Registry {
  /** Names of the consumers that this process has declared. */
  readonly local: readonly string[]
  /** Writes them down for other processes. */
  announce(): Promise<unknown>
}

export async function setPaused(
  runtime: Runtime,
  registry: Registry,
  consumer: string,
  paused: boolean,
): Promise<void> {
  let known = await write(runtime, consumer, paused)
  if (!known && registry.local.includes(consumer)) {
    await registry.announce()
    known = await write(runtime, consumer, paused)
  }
  if (!known) {
    const near = typeof consumer === 'string' ? nearest(consumer, registry.local) : undefined
    const hint = near ? `did you mean ${near}?` : 'status() lists those there are'
    throw new OnceboxError('CONSUMER_UNKNOWN', `there is no consumer ${JSON.stringify(consumer)}; ${hint}`)
  }
  await audit(runtime, paused ? 'pause' : 'resume', { consumer })
}

async function write({ db }: Runtime, consumer: unknown, paused: boolean): Promise<boolean> {
  if (typeof consumer !== 'string' || consumer.includes('\0') || !consumer.isWellFormed()) return false
  return (await db.run(SET_PAUSED, { n: consumer, p: paused })).length > 0
}

/** A consumer or a sink that there is not: says which one was meant, perhaps, or which there are. */
import { OnceboxError } from '../errors.js'
import { GONE_MS } from '../figures.js'
import { unknownConsumers } from '../inbox/registry.js'
import { hintAt } from '../nearest.js'
import { SINKS } from '../postgres/sql/admin.js'
import type { Runtime } from '../runtime.js'

export async function unknownConsumer(
  runtime: Runtime,
  local: readonly string[],
  name: unknown,
): Promise<OnceboxError> {
  const what = `there is no consumer ${JSON.stringify(name)}`
  if (!isName(name)) return new OnceboxError('CONSUMER_UNKNOWN', `${what}; consumers() lists those there are`)
  if (local.includes(name)) {
    return new OnceboxError('CONSUMER_UNKNOWN', `${what} yet: this process has declared it, and nobody has started it`)
  }
  const [found] = await unknownConsumers(runtime, [name], local)
  return new OnceboxError('CONSUMER_UNKNOWN', `${what}; ${found?.hint ?? 'consumers() lists those there are'}`)
}

export async function unknownSink({ db }: Runtime, name: unknown): Promise<OnceboxError> {
  const what = `there is no sink ${JSON.stringify(name)}, and nothing is to be published to it`
  if (!isName(name)) return new OnceboxError('NOT_FOUND', what)
  const known = (await db.run(SINKS, { goneMs: GONE_MS })).map((sink) => sink.name)
  return new OnceboxError('NOT_FOUND', `${what}; ${hintAt(name, known, `there is ${known.join(', ') || 'none'}`)}`)
}

/** One that the server can be asked for. */
export function isName(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && !name.includes('\0') && name.isWellFormed()
}

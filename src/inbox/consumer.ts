/** What a consumer is: a name, handlers by type, and options. The declaration; `worker.ts` runs it. */
import { patternRefused, nameProblem, typeUnknown } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { batchRun, type Logger } from '../handler.js'
import type { LocalConsumer } from '../local-consumer.js'
import type { MessageMap } from '../message.js'
import type { Driver } from '../postgres/driver.js'
import { resolveOptions, type ConsumerOptions, type ResolvedOptions } from './options.js'

export interface ConsumerDeclaration {
  readonly name: string
  readonly options: ResolvedOptions
  /** The types it handles; '*' for every type not listed. */
  readonly types: readonly string[]
  handlerOf(type: string): unknown
}

export function declareConsumer<M extends MessageMap>(
  name: string,
  handlers: Readonly<Record<string, unknown>>,
  options: ConsumerOptions<M> | undefined,
  { messages, log }: { readonly messages: MessageMap | undefined; readonly log?: Logger },
): ConsumerDeclaration {
  const problem = nameProblem(name, 200)
  if (problem) throw new OnceboxError('OPTION_INVALID', `a consumer's name ${problem}`)
  const entries = handlersIn(name, handlers)
  if (entries.length === 0) {
    throw new OnceboxError('OPTION_INVALID', `consumer ${name} has no handlers; give it one per message type, or '*'`)
  }
  const byType = new Map<string, unknown>()
  for (const [type, handler] of entries) {
    if (typeof handler !== 'function' && !batchRun(handler)) {
      throw new OnceboxError(
        'OPTION_INVALID',
        `consumer ${name}: the handler of ${type} is no function, and no batch()`,
      )
    }
    if (messages && type !== '*' && !Object.hasOwn(messages, type)) {
      throw typeUnknown(`consumer ${name}`, type, Object.keys(messages))
    }
    if (!messages && type !== '*' && type.includes('*')) {
      throw patternRefused(`consumer ${name}`, type, `'*' takes every type that is not listed`)
    }
    const odd = nameProblem(type)
    if (odd) throw new OnceboxError('OPTION_INVALID', `consumer ${name}: the type ${JSON.stringify(type)} ${odd}`)
    byType.set(type, handler)
  }
  return {
    name,
    options: resolveOptions(name, options, log),
    types: [...byType.keys()],
    handlerOf: (type) => byType.get(type) ?? byType.get('*'),
  }
}

function handlersIn(consumer: string, given: unknown): [type: string, handler: unknown][] {
  const entries = Object.entries(given ?? {}).filter(([, handler]) => handler !== undefined)
  const got = batchRun(given) ? 'batch(…)' : Array.isArray(given) ? 'an array' : `a ${typeof given}`
  // The letters of a type, and the places of a list, are no types.
  if (got === 'a object' || given === undefined) return entries
  const example = `{ 'order.placed': async (message, { tx }) => … }`
  throw new OnceboxError('OPTION_INVALID', `consumer ${consumer}: handlers are an object, ${example}; got ${got}`)
}

/** Refuses what the client of the box cannot do. */
export function checkClient(
  { name, options }: ConsumerDeclaration,
  { together }: Pick<Driver<never>, 'together'>,
): void {
  if (!options.group.together || together) return
  throw new OnceboxError(
    'OPTION_INVALID',
    `consumer ${name}: group.together needs a client that sends a statement before the one ahead of it is answered, for several handlers at a time: pg 8.23 or newer, not its native client, or postgres.js, or what sits on them, except Prisma; leave it out`,
  )
}

/** A name is one consumer's, or one endpoint's. */
export function checkNew(name: string, ...taken: readonly ReadonlyMap<string, unknown>[]): void {
  if (!taken.some((names) => names.has(name))) return
  throw new OnceboxError('CONSUMER_EXISTS', `there is a consumer ${name} already; give each its own name`)
}

/** A consumer as RECEIVE and REGISTER take it. */
export function asReceiverSeesIt({ name, types, options }: ConsumerDeclaration): LocalConsumer {
  const { order, retainMs, untimed, identity } = options
  return { name, ordered: order === 'key', retainMs, untimed, types, identity: identity !== undefined }
}

/** A receiver that lacks a consumer's `identity` would store two messages about one fact as two. */
export function identityUnknown(consumer: string): OnceboxError {
  return new OnceboxError(
    'IDENTITY_UNKNOWN',
    `consumer ${consumer} has an identity function in another process, and this one cannot compute its keys; declare the consumer here too, with its identity, or receive where it is declared`,
  )
}

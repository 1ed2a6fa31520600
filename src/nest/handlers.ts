/** The handlers of a consumer class, each called through Nest: guards first, then interceptors around it. */
import { ContextIdFactory, type ExternalContextCreator, type ModuleRef } from '@nestjs/core'
import { batch, type BatchContext, type Context, type Handlers } from '../handler.js'
import type { Message, MessageMap } from '../message.js'
import { invalid } from '../options.js'
import type { FoundConsumer, FoundMethod } from './discover.js'
import { FirstCall } from './first-call.js'

/** What `context.getType()` says to guards and interceptors. */
const CONTEXT_TYPE = 'oncebox'

/** What `@Inject(REQUEST)` gets in a provider that is made for each call of a handler. */
export type MessageRequest<M extends MessageMap = MessageMap, Tx = unknown> =
  | { readonly message: Message; readonly messages?: never; readonly ctx: Context<M, Tx> }
  | { readonly message?: never; readonly messages: readonly Message[]; readonly ctx: BatchContext<M, Tx> }

export interface Through {
  readonly external: ExternalContextCreator
  readonly modules: ModuleRef
}

type Call = (subject: never, ctx: never) => Promise<unknown>

export function handlersOf(through: Through, consumer: FoundConsumer): Handlers<MessageMap, unknown> {
  const handlers: Record<string, unknown> = {}
  for (const method of consumer.methods) {
    const call = callOf(through, consumer, method)
    for (const { type, batch: isBatch } of method.marks) {
      if (Object.hasOwn(handlers, type)) {
        throw invalid(`${consumer.target.name} handles ${type} twice, also in ${method.key}`)
      }
      handlers[type] = isBatch ? batch((messages, ctx) => call(messages as never, ctx as never)) : call
    }
  }
  return handlers as Handlers<MessageMap, unknown>
}

function callOf(through: Through, { wrapper }: FoundConsumer, { key, marks }: FoundMethod): Call {
  if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) {
    return enhanced(through, { instance: wrapper.instance as object, key, id: wrapper.id })
  }
  // Something that it depends on is made per request, and a call of a handler is one.
  return async (subject, ctx) => {
    const request = { [marks[0]!.batch ? 'messages' : 'message']: subject, ctx }
    const contextId = ContextIdFactory.getByRequest(request)
    through.modules.registerRequestByContextId(request, contextId)
    const instance = await through.modules.resolve<object>(wrapper.token as never, contextId, { strict: false })
    return enhanced(through, { instance, key, id: wrapper.id, contextId })(subject, ctx)
  }
}

interface Target {
  readonly instance: object
  readonly key: string
  /** Of the provider: enhancers that are made for each of their users are found by it. */
  readonly id: string
  readonly contextId?: ReturnType<typeof ContextIdFactory.create>
}

function enhanced({ external }: Through, { instance, key, id, contextId }: Target): Call {
  const method = (instance as Record<string, (...args: unknown[]) => unknown>)[key]!
  // A filter that swallows an error would make the message handled.
  const kinds = { guards: true, interceptors: true, filters: false }
  const first = new FirstCall()
  const noting = first.noting(method)
  const call = external.create(instance, noting, key, undefined, undefined, contextId, id, kinds, CONTEXT_TYPE) as Call
  return (subject, ctx) => first.checked(ctx, call(subject, ctx))
}

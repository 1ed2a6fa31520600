/** The decorators: a class is a consumer, its methods are the handlers. They only mark; `discover.ts` reads the marks. */
import { Injectable, SetMetadata } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import { sharedByCopies } from '../copies.js'
import type { BatchContext, Context } from '../handler.js'
import type { ConsumerOptions } from '../inbox/options.js'
import type { MessageMap, MessageOf, Name } from '../message.js'
import { invalid } from '../options.js'
import { getBoxToken, InjectBox, type BoxName } from './tokens.js'

/** Texts, so that two copies of this file in one process understand each other. */
const CONSUMER = 'oncebox:consumer'
const HANDLE = 'oncebox:handle'
/** Nest's own mark of an `@Injectable()` class. */
const INJECTABLE = '__injectable__'
/** Nest's own mark of a class that is called from outside: guards and interceptors of the whole app are made for each call. */
const ENTRY = '__entryProvider__'

export interface ConsumerMark {
  readonly name: string
  readonly options: ConsumerOptions<MessageMap> | undefined
  readonly box: BoxName | undefined
}

export interface HandleMark {
  readonly type: string
  readonly batch: boolean
}

export type Constructor = abstract new (...args: never[]) => unknown

export interface Decorators<M extends MessageMap, Tx> {
  readonly Consumer: MakeConsumer<M>
  readonly Handle: MakeHandle<M, Tx>
  readonly HandleBatch: MakeHandleBatch<M, Tx>
  /** Injects the box that these decorators are for. */
  readonly InjectBox: () => ParameterDecorator & PropertyDecorator
}

// Each has a name of its own, or an app that emits declarations could not say what it exports.

/** Marks a class as a consumer; its name is the unit of deduplication. The class has to be a provider of a module. */
export type MakeConsumer<M extends MessageMap> = (name: string, options?: ConsumerOptions<M>) => ClassDecorator

/** Marks the handler of messages of these types. `'*'` is every type that no other method of the class handles. */
export interface MakeHandle<M extends MessageMap, Tx> {
  <const K extends Name<M> | '*'>(
    ...types: readonly [K, ...K[]]
  ): HandleDecorator<(message: Handled<M, K>, ctx: Context<M, Tx>) => unknown>
}

/** Marks a handler of many messages of one type: one call, one transaction. If it throws, the batch is bisected. */
export interface MakeHandleBatch<M extends MessageMap, Tx> {
  <const K extends Name<M> | '*'>(
    ...types: readonly [K, ...K[]]
  ): HandleDecorator<(messages: readonly Handled<M, K>[], ctx: BatchContext<M, Tx>) => unknown>
}

/** Marks the handler of messages of these types, whatever its parameters say of them. */
export type MakeAnyHandle = (
  ...types: readonly [string, ...string[]]
) => HandleDecorator<(messages: never, ctx: never) => unknown>

type Handled<M extends MessageMap, K> = MessageOf<M, K extends Name<M> ? K : Name<M>>

/** The method's parameters are checked against the message and the context; TypeScript infers none for a method. */
export type HandleDecorator<Fits> = <F extends Fits>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
) => void

/**
 * Decorators that know the messages and the transaction of a box.
 *
 * @param box the name of the box, if there is more than one
 *
 * @example
 * const { Consumer, Handle } = decorators<typeof messages, PoolClient>()
 */
export function decorators<M extends MessageMap = MessageMap, Tx = unknown>(box?: BoxName): Decorators<M, Tx> {
  getBoxToken(box)
  return {
    Consumer(name, options) {
      const mark = { name, options: options as ConsumerOptions<MessageMap> | undefined, box }
      return (target) => {
        // Not over one that is there: it may have a scope.
        if (!read(INJECTABLE, target)) Injectable()(target)
        SetMetadata(ENTRY, true)(target)
        SetMetadata(CONSUMER, mark)(target)
        declared.set(`${String(getBoxToken(box))}/${name}`, { target: target as unknown as Constructor, mark })
      }
    },
    Handle: (...types) => handles('Handle', types, false),
    HandleBatch: (...types) => handles('HandleBatch', types, true),
    InjectBox: () => InjectBox(box),
  }
}

// For the box of an app that has one, without its vocabulary: what a method says of its parameters is taken at its word.
export const { Consumer } = decorators()
export const Handle: MakeAnyHandle = (...types) => handles('Handle', types, false)
export const HandleBatch: MakeAnyHandle = (...types) => handles('HandleBatch', types, true)

function handles(what: string, types: readonly string[], batch: boolean) {
  if (types.length === 0) throw invalid(`@${what} needs the type that the method handles`)
  return (target: object, key: string | symbol, descriptor: { readonly value?: unknown } | undefined): void => {
    const method = descriptor?.value
    if (typeof method !== 'function' || typeof target === 'function') {
      const where = `${typeof target === 'function' ? `static ${target.name}` : target.constructor.name}.${String(key)}`
      throw invalid(`@${what} belongs on a method of a @Consumer class; ${where} is none`)
    }
    // A method may have several: they add up.
    const marks = [...handleMarks(method), ...types.map((type) => ({ type, batch }))]
    SetMetadata(HANDLE, marks)(target, key, descriptor as PropertyDescriptor)
  }
}

/** Classes that were marked in this process, the latest of each name: what is loaded again replaces what was there. */
const declared = sharedByCopies('nest.consumers', () => new Map<string, Declared>())

export interface Declared {
  readonly target: Constructor
  readonly mark: ConsumerMark
}

export const declaredConsumers = (): readonly Declared[] => [...declared.values()]

/** Of the class, or of the one that it extends. */
export function consumerMark(target: object): ConsumerMark | undefined {
  return read<ConsumerMark>(CONSUMER, target)
}

export function handleMarks(method: object): readonly HandleMark[] {
  return read<readonly HandleMark[]>(HANDLE, method) ?? []
}

const reflector = new Reflector()

export function read<T>(key: string, target: object): T | undefined {
  return reflector.get<T | undefined>(key, target as never)
}

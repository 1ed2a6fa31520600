/** The options of the module: those of a box, and what Nest does with it. */
import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common'
import type { Box } from '../box.js'
import { BOX, type BoxOptions } from '../box-options.js'
import type { MessageMap } from '../message.js'
import { boolean, callback, checkNames, number, oneOf, optional, orInfinity, readAll } from '../options.js'
import type { BoxClass } from './tokens.js'

export interface LifecycleOptions<M extends MessageMap, Tx, TxIn> {
  /** Runs `box.migrate()` before the box starts. Without it, migrations are a step of the deployment. */
  migrate?: boolean | undefined
  /** Whether the box works in this process. A process that only sends says false. */
  start?: boolean | undefined
  /** How long the app waits, when it closes, for what is in flight. */
  stopTimeoutMs?: number | undefined
  /** Attaches sources and sinks, before the box starts: `(box) => { box.from(…); box.to(…) }`. */
  setUp?: ((box: Box<M, Tx, TxIn>) => unknown) | undefined
  /** What to do with a `@Consumer` class that is loaded and no provider of a module, in a process that starts the box. */
  unprovided?: 'refuse' | 'allow' | undefined
}

export const LIFECYCLE = {
  migrate: boolean(false),
  start: boolean(true),
  stopTimeoutMs: orInfinity(number({ least: 0, fallback: 30_000 })),
  setUp: optional(callback<(box: Box<MessageMap, unknown>) => unknown>(), 'none'),
  unprovided: oneOf(['refuse', 'allow'], 'refuse'),
}

/** What a factory of options answers. */
export type OnceboxOptions<M extends MessageMap, Tx, TxIn = Tx> = BoxOptions<M, Tx, TxIn> &
  LifecycleOptions<M, Tx, TxIn>

export type OnceboxModuleOptions<M extends MessageMap, Tx, TxIn = Tx> = OnceboxOptions<M, Tx, TxIn> & {
  /** Which box this is, if there is more than one: a text, or a class made with `boxClass`. */
  name?: string | BoxClass<M, Tx, TxIn> | undefined
}

/** A class that makes the options, for `useClass` and `useExisting`. */
export interface OnceboxOptionsFactory<M extends MessageMap = MessageMap, Tx = unknown, TxIn = Tx> {
  createOnceboxOptions(): OnceboxOptions<M, Tx, TxIn> | Promise<OnceboxOptions<M, Tx, TxIn>>
}

interface Asynchronous<M extends MessageMap, Tx, TxIn> extends Pick<ModuleMetadata, 'imports'> {
  /** Which box this is, if there is more than one: a text, or a class made with `boxClass`. */
  name?: string | BoxClass<M, Tx, TxIn> | undefined
  inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined
}

/** One of `useFactory`, `useClass` and `useExisting`. */
export type OnceboxModuleAsyncOptions<M extends MessageMap, Tx, TxIn = Tx> = Asynchronous<M, Tx, TxIn> &
  (
    | {
        useFactory: (...injected: never[]) => OnceboxOptions<M, Tx, TxIn> | Promise<OnceboxOptions<M, Tx, TxIn>>
        useClass?: never
        useExisting?: never
      }
    | { useClass: Type<OnceboxOptionsFactory<M, Tx, TxIn>>; useFactory?: never; useExisting?: never }
    | { useExisting: Type<OnceboxOptionsFactory<M, Tx, TxIn>>; useFactory?: never; useClass?: never }
  )

export interface ReadOptions {
  readonly box: BoxOptions<MessageMap, unknown, unknown>
  readonly lifecycle: ReturnType<typeof readLifecycle>
}

/** Tells the two kinds apart. An unknown option is refused with both in view. */
export function readOptions(given: OnceboxOptions<MessageMap, unknown, unknown>): ReadOptions {
  checkNames('OnceboxModule', given, { ...BOX, ...LIFECYCLE })
  const entries = Object.entries(given)
  const pick = (of: object): object => Object.fromEntries(entries.filter(([name]) => name in of))
  return { box: pick(BOX) as ReadOptions['box'], lifecycle: readLifecycle(pick(LIFECYCLE)) }
}

function readLifecycle(given: LifecycleOptions<MessageMap, unknown, unknown>) {
  return readAll('OnceboxModule', given, LIFECYCLE)
}

/**
 * The module. Two of them, since Nest destroys global modules last, after those that they import, and so after the one that
 * ends the pool: a global one has the box, for every module to inject, and no hooks; a plain one has the hooks.
 */
import { Module, type DynamicModule, type FactoryProvider, type Provider } from '@nestjs/common'
import { DiscoveryModule, DiscoveryService, ExternalContextCreator, MetadataScanner, ModuleRef } from '@nestjs/core'
import { createBox, type Box } from '../box.js'
import { sharedByCopies } from '../copies.js'
import type { MessageMap } from '../message.js'
import { invalid } from '../options.js'
import { createHooks } from './lifecycle.js'
import { createNestLogger } from './logger.js'
import {
  readOptions,
  type OnceboxModuleAsyncOptions,
  type OnceboxModuleOptions,
  type OnceboxOptions,
  type OnceboxOptionsFactory,
  type ReadOptions,
} from './options.js'
import { getBoxToken, type BoxName } from './tokens.js'

/** Has the box. Exported for Nest's tools that list modules; import `OnceboxModule`. */
export class OnceboxCoreModule {}
Module({})(OnceboxCoreModule)

export class OnceboxModule {
  /** A box whose database client is at hand. */
  static forRoot<Tx, TxIn = Tx, const M extends MessageMap = MessageMap>(
    given: OnceboxModuleOptions<M, Tx, TxIn>,
  ): DynamicModule {
    const { name, ...options } = given
    // By a function: Nest 10 makes a text of every value, to tell modules apart.
    const provide = { inject: [], useFactory: () => options as unknown as AnyOptions }
    return moduleOf({ name, options: provide })
  }

  /** A box whose options come from the container: from a pool, a ConfigService, a class of your own. */
  static forRootAsync<Tx, TxIn = Tx, const M extends MessageMap = MessageMap>(
    given: OnceboxModuleAsyncOptions<M, Tx, TxIn>,
  ): DynamicModule {
    const { name, imports = [], inject = [], useFactory, useClass, useExisting } = given
    const made = useClass ?? useExisting
    if (Number(useFactory !== undefined) + Number(useClass !== undefined) + Number(useExisting !== undefined) !== 1) {
      throw invalid('forRootAsync takes one of useFactory, useClass and useExisting')
    }
    const options = made
      ? { inject: [made], useFactory: (factory: OnceboxOptionsFactory) => factory.createOnceboxOptions() }
      : { inject, useFactory: useFactory! }
    const providers = useClass ? [useClass] : []
    return moduleOf({ name, options: options as Sort, imports, providers })
  }
}
Module({})(OnceboxModule)

type AnyOptions = OnceboxOptions<MessageMap, unknown>
/** Where the options come from. */
type Sort = Pick<FactoryProvider<AnyOptions>, 'inject' | 'useFactory'>

interface Asked {
  readonly name: BoxName | undefined
  readonly options: Sort
  readonly imports?: NonNullable<DynamicModule['imports']>
  readonly providers?: Provider[]
}

const modules = sharedByCopies('nest-modules', () => ({ count: 0 }))

function moduleOf({ name, options, imports = [], providers = [] }: Asked): DynamicModule {
  const token = getBoxToken(name) as string
  // Of its own for each module: Nest 10 takes two modules with equal texts for one.
  const OPTIONS = Symbol(`oncebox.options.${++modules.count}`)
  const { inject = [], useFactory } = options
  const read: FactoryProvider<ReadOptions> = {
    provide: OPTIONS,
    inject,
    useFactory: async (...injected: unknown[]) => readOptions(await useFactory(...injected)),
  }
  const box: FactoryProvider = {
    provide: token,
    inject: [OPTIONS],
    useFactory: ({ box: given }: ReadOptions) => createBox({ logger: createNestLogger(name), ...given }),
  }
  const hooks: FactoryProvider = {
    provide: Symbol(`oncebox.hooks.${modules.count}`),
    inject: [token, OPTIONS, DiscoveryService, MetadataScanner, ExternalContextCreator, ModuleRef],
    useFactory: (...[given, { lifecycle }, discovery, scanner, external, moduleRef]: Injected) =>
      createHooks({ name, box: given, options: lifecycle, discovery, scanner, external, modules: moduleRef }),
  }
  const core = { module: OnceboxCoreModule, global: true, imports, providers: [...providers, read, box] }
  return {
    module: OnceboxModule,
    imports: [DiscoveryModule, { ...core, exports: [OPTIONS, token] }],
    providers: [hooks],
  }
}

type Injected = [
  Box<MessageMap, unknown>,
  ReadOptions,
  DiscoveryService,
  MetadataScanner,
  ExternalContextCreator,
  ModuleRef,
]

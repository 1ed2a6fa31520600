/**
 * A transaction of Knex on a connection that is lent: what `knex.transaction()` would make, without its BEGIN and COMMIT. It
 * inherits from the instance, since making one anew copies some two hundred methods for each message.
 */
import { refuse } from '../../postgres/drivers/loan-errors.js'
import type { Bound } from '../bound.js'
import { Heeded } from '../heeded.js'
import { refusingForgotten } from '../forgotten.js'
import type { KnexBuilder, KnexClient, KnexInstance, KnexSchemaBuilder } from './client.js'

const WRITES = new Set(['insert', 'update', 'del', 'upsert', 'truncate'])

export function transactionOn(root: KnexInstance, connection: object): Bound<KnexInstance> {
  const built: KnexBuilder[] = []
  const schemas: KnexSchemaBuilder[] = []
  const compiled = new Set<object>()
  const within = new Heeded()

  const client = Object.assign(Object.create(root.client) as KnexClient, {
    transacting: true,
    config: configOf(root.client),
    // Listeners of its own: those of the instance are not added to.
    ...{ _events: undefined, _eventsCount: 0 },
    acquireConnection: () => Promise.resolve(connection),
    releaseConnection: () => Promise.resolve(),
    destroy: refuse('destroy'),
    emit(event: string, ...args: unknown[]): boolean {
      const isHeard = root.client.emit(event, ...args)
      return tx.emit(event, ...args) || isHeard
    },
    queryBuilder(): KnexBuilder {
      const builder = root.client.queryBuilder.call(client)
      built.push(builder)
      return builder
    },
    queryCompiler(builder: object, formatter?: unknown): unknown {
      compiled.add(builder)
      return root.client.queryCompiler.call(client, builder, formatter)
    },
    schemaBuilder(): KnexSchemaBuilder {
      const builder = root.client.schemaBuilder.call(client)
      schemas.push(builder)
      return builder
    },
    schemaCompiler(builder: object): unknown {
      compiled.add(builder)
      return root.client.schemaCompiler.call(client, builder)
    },
  })

  const open = (table: unknown, options?: unknown): unknown => client.queryBuilder().table(table, options)
  const tx = Object.setPrototypeOf(open, root) as KnexInstance
  const context = Object.create(root.context) as KnexInstance['context']
  // Transactions within this one follow each other, as savepoints must.
  const outer = { _lastChild: Promise.resolve(), isCompleted: () => within.isOver, transactor: tx }
  const transaction = (work: unknown, config?: object) => within.watch(nested(context, outer, [work, config]))
  Object.assign(context, {
    client,
    transaction,
    batchInsert: (...batch: unknown[]) => within.watch(root.context.batchInsert!.apply(context, batch)),
    withUserParams: refuseParams,
  })
  const own = {
    ...{ context, isTransaction: true, _events: undefined, _eventsCount: 0, _internalListeners: [] },
    isCompleted: () => within.isOver,
    savepoint: transaction,
    ...{ commit: refuse('commit'), rollback: refuse('rollback') },
  }
  for (const [name, value] of Object.entries(own)) {
    Object.defineProperty(tx, name, { value, writable: true, configurable: true, enumerable: true })
  }

  return {
    tx,
    run: refusingForgotten(() => {
      const written = [...built.filter((builder) => isForgotten(builder, client)), ...schemas.filter(isChange)]
      return written.filter((builder) => !compiled.has(builder)).length
    }),
    leave: () => within.leave(),
    close: () => within.close(),
  }
}

/** Written to be sent, and neither sent nor made a part of another: builders are sent when they are awaited. */
function isForgotten({ client, _method }: KnexBuilder, own: object): boolean {
  return client === own && _method !== undefined && WRITES.has(_method)
}

function isChange({ _sequence = [] }: KnexSchemaBuilder): boolean {
  return _sequence.some(({ method }) => !method.startsWith('has'))
}

function nested(
  context: KnexInstance['context'],
  outer: object,
  [work, given]: [unknown, object?],
): PromiseLike<unknown> {
  const isConfig = given === undefined && typeof work === 'object' && work !== null
  const config = { doNotRejectOnRollback: true, ...(isConfig ? work : given) }
  return context._transaction!(isConfig ? null : work, config, outer)
}

const configs = new WeakMap<KnexClient, object>()

/** By default Knex puts the values of a row into the message of an error. */
function configOf(client: KnexClient): object {
  let config = configs.get(client)
  if (!config) configs.set(client, (config = Object.create(client.config ?? {}, NO_VALUES) as object))
  return config
}

const NO_VALUES = { compileSqlOnError: { value: false, enumerable: true } }

function refuseParams(): never {
  throw new Error('a transaction has the user params of its instance, and takes no others')
}

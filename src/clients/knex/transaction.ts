/**
 * A transaction of Knex on a connection that is lent: what `knex.transaction()` would make, without its BEGIN and COMMIT. It
 * inherits from the instance, since making one anew copies some two hundred methods for each message; and what all loans
 * of an instance have in common is made once, between the two.
 */
import { refuse } from '../../postgres/drivers/loan-errors.js'
import type { Bound } from '../bound.js'
import { Heeded } from '../heeded.js'
import { refusingForgotten } from '../forgotten.js'
import type { KnexBuilder, KnexClient, KnexInstance, KnexSchemaBuilder } from './client.js'

const WRITES = new Set(['insert', 'update', 'del', 'upsert', 'truncate'])

export function transactionOn(root: KnexInstance, connection: object): Bound<KnexInstance> {
  const lent = new Lent(modelsOf(root), connection)
  return {
    tx: lent.tx,
    run: refusingForgotten(() => lent.forgotten),
    leave: () => lent.within.leave(),
    close: () => lent.within.close(),
  }
}

/** One loan. The three objects that Knex knows it by lead to it. */
class Lent {
  readonly connection: object
  readonly within = new Heeded()
  readonly built: KnexBuilder[] = []
  readonly schemas: KnexSchemaBuilder[] = []
  readonly compiled = new Set<object>()
  readonly client: KnexClient
  readonly tx: KnexInstance
  readonly #context: KnexInstance['context']
  #outer: object | undefined

  constructor(models: Models, connection: object) {
    this.connection = connection
    const client = (this.client = on(models.client, this))
    const context = (this.#context = Object.assign(on(models.context, this), { client }))
    const open = (table: unknown, options?: unknown): unknown => client.queryBuilder().table(table, options)
    this.tx = Object.assign(Object.setPrototypeOf(open, models.tx) as KnexInstance, { [LENT]: this, context })
  }

  get forgotten(): number {
    const written = [
      ...this.built.filter((builder) => isForgotten(builder, this.client)),
      ...this.schemas.filter(isChange),
    ]
    return written.filter((builder) => !this.compiled.has(builder)).length
  }

  transaction(work: unknown, config?: object): PromiseLike<unknown> {
    // Those within this one follow each other, as savepoints must.
    this.#outer ??= { _lastChild: Promise.resolve(), isCompleted: () => this.within.isOver, transactor: this.tx }
    return this.within.watch(nested(this.#context, this.#outer, [work, config]))
  }
}

const LENT = Symbol('oncebox.lent')

interface OnLoan {
  readonly [LENT]: Lent
}

function on<Model extends object>(model: Model, lent: Lent): Model {
  return Object.assign(Object.create(model) as Model, { [LENT]: lent })
}

/** What the loans of an instance inherit from, each on top of what the instance has itself. */
interface Models {
  readonly client: KnexClient
  readonly context: KnexInstance['context']
  readonly tx: KnexInstance
}

const models = new WeakMap<KnexInstance, Models>()

function modelsOf(root: KnexInstance): Models {
  let made = models.get(root)
  if (!made) models.set(root, (made = { client: clientModel(root), context: contextModel(root), tx: txModel(root) }))
  return made
}

/** Listeners of its own: those of the instance are not added to. */
const NO_LISTENERS = { _events: undefined, _eventsCount: 0 }

function clientModel({ client: root }: KnexInstance): KnexClient {
  return Object.assign(Object.create(root) as KnexClient, {
    transacting: true,
    config: Object.create(root.config ?? {}, NO_VALUES) as object,
    ...NO_LISTENERS,
    acquireConnection(this: OnLoan) {
      return Promise.resolve(this[LENT].connection)
    },
    releaseConnection: () => Promise.resolve(),
    destroy: refuse('destroy'),
    emit(this: OnLoan, event: string, ...args: unknown[]): boolean {
      const isHeard = root.emit(event, ...args)
      return this[LENT].tx.emit(event, ...args) || isHeard
    },
    queryBuilder(this: KnexClient & OnLoan): KnexBuilder {
      const builder = root.queryBuilder.call(this)
      this[LENT].built.push(builder)
      return builder
    },
    queryCompiler(this: KnexClient & OnLoan, builder: object, formatter?: unknown): unknown {
      this[LENT].compiled.add(builder)
      return root.queryCompiler.call(this, builder, formatter)
    },
    schemaBuilder(this: KnexClient & OnLoan): KnexSchemaBuilder {
      const builder = root.schemaBuilder.call(this)
      this[LENT].schemas.push(builder)
      return builder
    },
    schemaCompiler(this: KnexClient & OnLoan, builder: object): unknown {
      this[LENT].compiled.add(builder)
      return root.schemaCompiler.call(this, builder)
    },
  })
}

/** By default Knex puts the values of a row into the message of an error. */
const NO_VALUES = { compileSqlOnError: { value: false, enumerable: true } }

function contextModel({ context: root }: KnexInstance): KnexInstance['context'] {
  return Object.assign(Object.create(root) as KnexInstance['context'], {
    transaction(this: OnLoan, work: unknown, config?: object) {
      return this[LENT].transaction(work, config)
    },
    batchInsert(this: OnLoan, ...batch: unknown[]) {
      return this[LENT].within.watch(root.batchInsert!.apply(this, batch))
    },
    withUserParams: refuseParams,
  })
}

/** Defined, for the instance has some of them read-only. What is asked for `this` is of use without it too, as Knex's own is. */
function txModel(root: KnexInstance): KnexInstance {
  const own = {
    ...{ isTransaction: true, ...NO_LISTENERS, _internalListeners: [] },
    ...{ commit: refuse('commit'), rollback: refuse('rollback') },
  }
  const values = Object.entries(own).map(([name, value]) => [name, { ...PLAIN, value, writable: true }] as const)
  return Object.create(root, {
    ...Object.fromEntries(values),
    context: { ...PLAIN, value: undefined, writable: true },
    isCompleted: {
      ...PLAIN,
      get(this: OnLoan) {
        return () => this[LENT].within.isOver
      },
    },
    savepoint: {
      ...PLAIN,
      get(this: OnLoan) {
        return (work: unknown, config?: object) => this[LENT].transaction(work, config)
      },
    },
  }) as KnexInstance
}

const PLAIN = { configurable: true, enumerable: true }

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

function refuseParams(): never {
  throw new Error('a transaction has the user params of its instance, and takes no others')
}

/**
 * Drizzle sends a statement when somebody awaits it: `tx.insert(…).values(…)` without `await` does nothing, and nobody is
 * told. Writes that a handler made and that were never sent, nor put into another statement, are counted here. A transaction
 * within begins at once, so it is heeded.
 */
import { Heeded } from '../heeded.js'

type Method = (this: unknown, ...args: unknown[]) => unknown
type Members = Record<string, unknown>

const UNSENT = Symbol('oncebox.unsent')

interface Watched {
  [UNSENT]?: Unsent
}

export class Unsent {
  readonly #made = new Set<object>()
  /** Transactions within. */
  readonly within = new Heeded()

  get count(): number {
    return this.#made.size
  }

  /** Counts the writes of this transaction, which `watching` has made. */
  watch<Tx extends object>(tx: Tx): Tx {
    ;(tx as Watched)[UNSENT] = this
    return tx
  }

  /** A builder: of a statement, or of one whose rows are still to be told. */
  made(builder: object): object {
    const members = builder as Members
    if (typeof members['then'] === 'function') {
      this.#made.add(builder)
      // It is sent, or becomes a part of another one.
      for (const name of ['execute', 'getSQL']) this.#before(members, name, () => this.#made.delete(builder))
    } else {
      for (const name of ['values', 'select', 'set']) this.#after(members, name)
    }
    return builder
  }

  #before(members: Members, name: string, act: () => void): void {
    const method = members[name] as Method | undefined
    if (!method) return
    members[name] = function (this: unknown, ...args: unknown[]) {
      act()
      return method.apply(this, args)
    }
  }

  #after(members: Members, name: string): void {
    const method = members[name] as Method | undefined
    if (method) members[name] = (...args: unknown[]) => this.made(method.apply(members, args) as object)
  }
}

/** The transaction, with methods that count what they make. */
export function watching(tx: object): object {
  const own = tx as Record<string, Method>
  const counted = (name: string): PropertyDescriptor => ({
    value(this: Watched, ...args: unknown[]): unknown {
      const made = own[name]!.apply(this, args) as object
      return this[UNSENT]?.made(made) ?? made
    },
  })
  return Object.create(tx, {
    insert: counted('insert'),
    update: counted('update'),
    delete: counted('delete'),
    execute: counted('execute'),
    refreshMaterializedView: counted('refreshMaterializedView'),
    with: {
      value(this: Watched, ...queries: unknown[]): unknown {
        const made = own['with']!.apply(this, queries) as Record<string, Method>
        return Object.create(made, {
          insert: { value: (...args: unknown[]) => counting(this, made['insert']!(...args)) },
          update: { value: (...args: unknown[]) => counting(this, made['update']!(...args)) },
          delete: { value: (...args: unknown[]) => counting(this, made['delete']!(...args)) },
        })
      },
    },
    transaction: {
      value(this: Watched, work: Method, ...config: unknown[]): unknown {
        const unsent = this[UNSENT]
        if (!unsent) return own['transaction']!.call(this, work, ...config)
        const nested = (inner: object): unknown => work(unsent.watch(Object.create(watching(inner)) as object))
        return unsent.within.watch(own['transaction']!.call(this, nested, ...config) as Promise<unknown>)
      },
    },
  }) as object
}

function counting(tx: Watched, made: unknown): unknown {
  return tx[UNSENT]?.made(made as object) ?? made
}

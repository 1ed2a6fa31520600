/**
 * Kysely sends a statement when it is executed: `tx.insertInto(…).values(…)` without `.execute()` does nothing, and nobody is
 * told. Writes that a handler began on its `tx`, and that were neither sent nor put into another statement, are counted here.
 *
 * A statement keeps its id from its first word on, and shows it to plugins when it is compiled. So there is a plugin in front
 * of the user's that changes nothing, and hears of a write once when it is begun and again when it is used.
 */
import { refusingForgotten } from '../forgotten.js'

const WRITES = ['insertInto', 'replaceInto', 'updateTable', 'deleteFrom', 'mergeInto'] as const

interface Builder {
  toOperationNode(): unknown
}
/** Of `mergeInto`: it can be asked nothing before it knows what to merge, and keeps its id then. */
interface MergeBuilder {
  using(table: string, left: string, right: string): Builder
}
type Writer = Partial<Record<(typeof WRITES)[number], (...tables: unknown[]) => Builder | MergeBuilder>>

const UNSENT = Symbol('oncebox.unsent')

/** The ids of statements that were begun and not used. */
type Unsent = Set<object>

/** Keeps the user's plugins out of what is not a statement yet. */
const HEARD = new Error('the id of the statement was heard')

export class Writes {
  readonly #begun = new WeakMap<object, Unsent>()
  #beginning: Unsent | undefined

  readonly plugin = {
    transformQuery: ({ node, queryId }: { node: object; queryId: object }): object => {
      if (this.#beginning) {
        this.#begun.set(queryId, this.#beginning.add(queryId))
        throw HEARD
      }
      this.#begun.get(queryId)?.delete(queryId)
      return node
    },
    transformResult: ({ result }: { result: object }): Promise<object> => Promise.resolve(result),
  }

  /** The class, with methods that count what they begin. */
  counted<C extends new (props: object) => object>(Transaction: C): C {
    const Counted = class extends (Transaction as new (props: object) => object) {}
    const begin = <B extends Builder | MergeBuilder>(builder: B, unsent: Unsent | undefined): B => {
      this.#beginning = unsent
      try {
        if (unsent) whole(builder).toOperationNode()
      } catch (error) {
        if (error !== HEARD) throw error
      } finally {
        this.#beginning = undefined
      }
      return builder
    }
    for (const name of WRITES) {
      const write = (Transaction.prototype as Writer)[name]
      if (!write) continue
      const value = function (this: { [UNSENT]?: Unsent }, ...tables: unknown[]): Builder | MergeBuilder {
        return begin(write.apply(this, tables), this[UNSENT])
      }
      Object.defineProperty(Counted.prototype, name, { value })
    }
    return Counted as C
  }
}

function whole(builder: Builder | MergeBuilder): Builder {
  return 'toOperationNode' in builder ? builder : builder.using('any', 'any.left', 'any.right')
}

/** From now on the writes of this transaction, of a counted class, are counted. */
export function refuseForgotten(tx: object): <R>(handler: () => Promise<R>) => Promise<R> {
  const unsent: Unsent = new Set()
  ;(tx as { [UNSENT]?: Unsent })[UNSENT] = unsent
  return refusingForgotten(() => unsent.size)
}

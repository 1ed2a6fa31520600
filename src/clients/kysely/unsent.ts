/**
 * Kysely sends a statement when it is executed: `tx.insertInto(…).values(…)` without `.execute()` does nothing, and nobody is
 * told. Writes that a handler began on its `tx`, and that were neither sent nor put into another statement, are counted here.
 *
 * A builder shows itself only to plugins, when it is compiled. So each write gets a plugin that changes nothing.
 */
import { forgottenQuery } from '../../postgres/drivers/loan-errors.js'

const WRITES = ['insertInto', 'replaceInto', 'updateTable', 'deleteFrom', 'mergeInto'] as const

type Write = (...tables: unknown[]) => object
type Creator = Record<(typeof WRITES)[number], Write | undefined> & { withPlugin(plugin: object): Creator }

/** Those that were made and not used. */
export type Unsent = Set<object>

export function watchWrites(tx: object): Unsent {
  const unsent: Unsent = new Set()
  const creator = tx as Creator
  for (const name of WRITES) {
    if (creator[name]) creator[name] = (...tables) => begin(creator, name, { tables, unsent })
  }
  return unsent
}

function begin(
  creator: Creator,
  name: (typeof WRITES)[number],
  { tables, unsent }: { tables: unknown[]; unsent: Unsent },
) {
  const write = {
    transformQuery({ node }: { node: object }): object {
      unsent.delete(write)
      return node
    },
    transformResult: ({ result }: { result: object }): Promise<object> => Promise.resolve(result),
  }
  unsent.add(write)
  return creator.withPlugin(write)[name]!(...tables)
}

export async function refuseForgotten<R>(handler: () => Promise<R>, unsent: Unsent): Promise<R> {
  const result = await handler()
  if (unsent.size > 0) throw forgottenQuery(unsent.size)
  return result
}

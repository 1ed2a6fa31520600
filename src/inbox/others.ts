/**
 * Others: consumers, here or in other processes, that take messages which run on arrival for somebody else. Theirs are stored.
 *
 * Any process may register one at any moment, and what comes after that is for it too. So every call asks the database, with
 * a snapshot that is no older than the call: memory only says how. Where all messages of a call are marked, the first mark
 * asks along (MARK), before any handler is called. If there are others, it is rolled back (`OthersMet`); the messages are
 * stored for them, and then run. Where others took a type the last time, they are asked for first.
 */
import type { OtherTakers } from '../postgres/sql/inline.js'

/** Nothing has run yet, and there are others, or one of them has a business key that is not known here. */
export class OthersMet extends Error {
  override readonly name = 'OthersMet'
}

/** What the first mark of a call asks. */
export interface OthersQuestion {
  readonly takers: OtherTakers
  /** Nobody has to ask any more in this call. */
  answered: boolean
}

/** So many types are remembered: senders choose their names. */
const MOST_TYPES = 1_000

/** Of which types others took messages the last time. */
export class Elsewhere {
  readonly #types = new Set<string>()

  has(type: string, only: readonly string[] | undefined): boolean {
    return this.#types.has(keyOf(type, only))
  }

  note(type: string, only: readonly string[] | undefined, taken: boolean): void {
    if (!taken) this.#types.delete(keyOf(type, only))
    else if (this.#types.size < MOST_TYPES) this.#types.add(keyOf(type, only))
  }
}

function keyOf(type: string, only: readonly string[] | undefined): string {
  return only === undefined ? type : JSON.stringify([type, only])
}

/**
 * What postgres.js lets one know of a query that is not answered yet: where it is, and on which of its connections. It sends a
 * query at once to a connection on which others are still unanswered, if none is idle.
 */
import type { Pending } from './gate.js'

/** A connection as postgres.js has it. It outlives its sockets, and belongs to one user after the other. */
export interface Connection {
  terminate?(): void
}

/**
 * Where a query is:
 * - waiting    it was not sent: others hold all connections, or one is being opened for it
 * - behind     it was sent behind others, whose answers come first
 * - next       its own answer is the next one on its line
 */
export type Place = 'waiting' | 'behind' | 'next'

/** Something that is owed an answer. */
export interface Asked {
  readonly place: Place
  /** Where its answer will come from, if that is known. */
  readonly connection: Connection | undefined
  /** True if the server has said something to it already, where that is known. */
  readonly begun?: boolean
}

/** Follows queries to their connections. postgres.js tells only of some queries; what it calls their `state` is one object for each connection. */
export class Whereabouts {
  readonly #connections = new WeakMap<object, Connection>()

  /** To be called before the query is sent. */
  follow(query: Pending): Asked {
    const { options } = query
    if (options) {
      const own = options.onexecute
      options.onexecute = (connection) => {
        if (query.state) this.#connections.set(query.state, connection)
        return own ? own(connection) : true
      }
    }
    const connectionOf = (): Connection | undefined => (query.state ? this.#connections.get(query.state) : undefined)
    return {
      get place() {
        if (!query.state) return 'waiting'
        return query.active ? 'next' : 'behind'
      },
      get connection() {
        return connectionOf()
      },
      get begun() {
        return !query.describeFirst
      },
    }
  }
}

/** What a route is declared by. One without the right that it takes does not compile. */
import type { Action } from './answers/index.js'
import type { Fields } from './fields.js'

/** `session`: everybody whom `authorize` knows. */
export type Permission = 'session' | Action

export interface Route<I extends Fields = Fields, Answer = unknown> {
  readonly method: 'GET' | 'POST'
  readonly path: `/${string}`
  readonly needs: Permission
  readonly input: I
  /** For the page. */
  readonly does: string
  /** `json` is data. `events` is a stream of them, `text` a body as it is, `page` and `asset` the interface. */
  readonly kind: 'json' | 'events' | 'text' | 'page' | 'asset'
  /** Counts against the limit of searches. */
  readonly search: boolean
  /** Never there: by this the compiler knows the answer. */
  readonly answer?: Answer
}

type Said = 'needs' | 'does'

/** A route that reads. */
export function get<Answer>() {
  return <const P extends `/${string}`, I extends Fields>(
    path: P,
    rest: Pick<Route<I>, Said | 'input'> & Partial<Pick<Route, 'kind' | 'search'>>,
  ): Route<I, Answer> => ({ method: 'GET', path, kind: 'json', search: false, ...rest })
}

/** A route that changes something. */
export function post<Answer>() {
  return <const P extends `/${string}`, I extends Fields>(
    path: P,
    rest: Pick<Route<I>, Said | 'input'> & Partial<Pick<Route, 'search'>>,
  ): Route<I, Answer> => ({ method: 'POST', path, kind: 'json', search: false, ...rest })
}

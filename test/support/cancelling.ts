/** Drivers to which something happens at one statement. */
import type { Driver } from 'oncebox'

type Rows = readonly Record<string, unknown>[]
type Query = (text: string, values: readonly unknown[], ...rest: unknown[]) => Promise<Rows>

const CANCELLED = 'select pg_cancel_backend(pg_backend_pid()), pg_sleep(60)'

/** An administrator cancels the first of these statements, or more of them: the server answers 57014. */
export function cancelling<Tx, TxIn>(driver: Driver<Tx, TxIn>, statement: string, times = 1): Driver<Tx, TxIn> {
  return atFirst(driver, statement, (query, [, , ...rest]) => query(CANCELLED, [], ...rest), times)
}

/** The first of these statements is kept from its connection for as long as this takes. */
export function delaying<Tx, TxIn>(
  driver: Driver<Tx, TxIn>,
  statement: string,
  until: () => Promise<unknown>,
): Driver<Tx, TxIn> {
  return atFirst(driver, statement, (query, args) => until().then(() => query(...args)))
}

function atFirst<Tx, TxIn>(
  driver: Driver<Tx, TxIn>,
  statement: string,
  act: (query: Query, args: Parameters<Query>) => Promise<Rows>,
  times = 1,
): Driver<Tx, TxIn> {
  let left = times
  return new Proxy(driver, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args) as unknown
      if (name !== 'query') return call
      return (...args: Parameters<Query>): unknown =>
        args[0] === statement && left-- > 0 ? act(call as Query, args) : call(...args)
    },
  })
}

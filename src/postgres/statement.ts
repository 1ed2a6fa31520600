/**
 * A statement that knows what goes into it and what comes out: `db.run(CLAIM, …)` takes the one and answers rows of the
 * other. What comes out is text or null, for every column is cast to text (see database.ts).
 */
export function statement<In, Out = Empty>(sql: string): Statement<In, Out> {
  return sql as Statement<In, Out>
}

/** The text of a statement. The types are there for the compiler alone. */
export type Statement<In, Out> = string & { readonly [types]: (given: In) => Out }

/** Rows that say something by their number alone. */
export type Empty = Readonly<Record<never, never>>

/** A boolean, as a column has it. */
export type Flag = 'true' | 'false'

/** JSON, as a column has it. */
export type Json<T> = string & { readonly [json]: T }

export function readJson<T>(text: Json<T>): T {
  return JSON.parse(text) as T
}

declare const types: unique symbol
declare const json: unique symbol

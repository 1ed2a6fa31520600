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

/**
 * A parameter with JSON texts behind its JSON, each after U+001E, which JSON cannot contain. They are cut out by their place, or, where
 * the server's encoding has changed their length, at U+001E. To write texts into the JSON and to read them out of it again would
 * take the server longer than all else that it does with them.
 */
export class WithTexts<Head> {
  readonly head: Head & { readonly bounds: string }

  constructor(
    head: Head,
    readonly texts: readonly string[],
  ) {
    this.head = { ...head, bounds: boundsOf(texts) }
  }
}

/** Where each begins, in bytes, and where one behind the last would. */
function boundsOf(texts: readonly string[]): string {
  let at = 0
  return ['0', ...texts.map((text) => String((at += Buffer.byteLength(text) + 1)))].join(' ')
}

/** What a statement is given for `$1`. */
export function toText(param: unknown): string {
  if (!(param instanceof WithTexts)) return JSON.stringify(param)
  const { head, texts } = param as WithTexts<object>
  return [JSON.stringify(head), ...texts].join('\u001e')
}

declare const types: unique symbol
declare const json: unique symbol

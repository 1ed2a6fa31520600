/** How a box is found in Nest's container: by a name, or by a class that stands for the box. */
import { Inject } from '@nestjs/common'
import type { Box } from '../box.js'
import { show } from '../check-options.js'
import type { MessageMap } from '../message.js'
import { invalid } from '../options.js'

/** A class whose instances have the type of the box. Nobody makes one: it is a token with a type. */
export type BoxClass<M extends MessageMap, Tx, TxIn = Tx> = abstract new (...args: never[]) => Box<M, Tx, TxIn>

/** What names a box: nothing for the only one, a text, or a class. */
export type BoxName = string | (abstract new (...args: never[]) => object)

const DEFAULT = 'default'

/** The token of a box, for `overrideProvider`, `app.get` and `inject`. Without a name: the token of the box without one. */
export function getBoxToken<C extends BoxName = string>(name?: C): C extends string ? string : C
export function getBoxToken(name: unknown = DEFAULT): unknown {
  if (typeof name === 'function') return name
  if (typeof name === 'string' && name !== '') return `OnceboxBox(${name})`
  throw invalid(`a box is named by a text or by a class; got ${show(name)}`)
}

/** Injects a box: the one without a name, or the one of that name. */
export function InjectBox(name?: BoxName): ParameterDecorator & PropertyDecorator {
  return Inject(getBoxToken(name))
}

/**
 * The class to extend for a box that is injected by its class: no decorator is needed, and the type comes with it.
 *
 * @example
 * export class ShopBox extends boxClass<typeof messages, PoolClient>() {}
 *
 * OnceboxModule.forRoot({ name: ShopBox, db: fromPg(pool), messages })
 * constructor(private readonly box: ShopBox) {}
 */
export function boxClass<M extends MessageMap, Tx, TxIn = Tx>(): BoxClass<M, Tx, TxIn> {
  abstract class Token {}
  return Token as BoxClass<M, Tx, TxIn>
}

/** As errors call a box. */
export function nameOf(name: BoxName | undefined): string {
  if (name === undefined) return 'the box without a name'
  return `box ${typeof name === 'string' ? name : name.name}`
}

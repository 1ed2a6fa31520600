/** A declaration of options and the interface it is for agree, or the program does not compile. */
import { expectTypeOf, test } from 'vitest'
import { boolean, integer, name, nested, oneOf, optional, resolve } from '../../src/options.js'

interface Given {
  stream: string
  batch?: number
  remove?: boolean
  mode?: 'a' | 'b'
  group?: { messages?: number; ms?: number }
}
declare const given: Given

const OPTIONS = {
  stream: name(),
  batch: integer({ least: 1, fallback: 100 }),
  remove: boolean(false),
  mode: oneOf(['a', 'b'], 'a'),
  group: nested({ messages: integer({ least: 1, fallback: 2 }), ms: optional(integer({ least: 1 })) }),
}

test('what is resolved has every default in its place', () => {
  expectTypeOf(resolve('x', given, OPTIONS)).toEqualTypeOf<{
    readonly stream: string
    readonly batch: number
    readonly remove: boolean
    readonly mode: 'a' | 'b'
    readonly group: { readonly messages: number; readonly ms: number | undefined }
  }>()
})

test('an option that only one of the two has does not compile', () => {
  // @ts-expect-error the interface has no such option
  resolve('x', given, { ...OPTIONS, extra: boolean(true) })
  const { batch: _, ...rest } = OPTIONS
  // @ts-expect-error batch is not declared
  resolve('x', given, rest)
})

test('an option that takes something else than its interface says does not compile', () => {
  // @ts-expect-error a number is not true or false
  resolve('x', given, { ...OPTIONS, batch: boolean(true) })
  // @ts-expect-error stream cannot be left out
  resolve('x', given, { ...OPTIONS, stream: optional(name()) })
  // @ts-expect-error batch can be left out
  resolve('x', given, { ...OPTIONS, batch: integer({ least: 1 }) })
  // @ts-expect-error mode takes b as well
  resolve('x', given, { ...OPTIONS, mode: oneOf(['a'], 'a') })
  // @ts-expect-error mode takes no c
  resolve('x', given, { ...OPTIONS, mode: oneOf(['a', 'b', 'c'], 'a') })
  // @ts-expect-error so it is inside: messages is a number
  resolve('x', given, { ...OPTIONS, group: nested({ messages: boolean(true), ms: optional(integer({ least: 1 })) }) })
})

/** `defineConfig`: takes the box of any vocabulary and any client, or what makes it, and nothing else. */
import type pg from 'pg'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { createBox, defineConfig, defineMessages, type Config } from 'oncebox'
import { defineConfig as fromItsOwnPath } from 'oncebox/config'
import { fromPg } from 'oncebox/pg'

declare const pool: pg.Pool
const messages = defineMessages({ 'order.placed': z.object({ orderId: z.string() }) })
const open = () => createBox({ db: fromPg(pool), messages })

test('takes a box, and a function that answers one now or later', () => {
  expectTypeOf(defineConfig({ box: open() })).toEqualTypeOf<Config>()
  defineConfig({ box: open, url: process.env['DATABASE_URL'], schema: 'shop' })
  defineConfig({ box: async () => open(), url: 'postgres://localhost/shop' })
  defineConfig({ box: open, example: () => ({ id: '1', type: 'order.placed', data: { orderId: 'A-1' } }) })
  expectTypeOf(fromItsOwnPath).toEqualTypeOf(defineConfig)
})

test('refuses what is no box', () => {
  // @ts-expect-error a pool
  defineConfig({ box: pool })
  // For commands that need no handlers, an address is enough.
  defineConfig({ url: 'postgres://localhost/shop' })
  // @ts-expect-error misspelt
  defineConfig({ box: open, shema: 'shop' })
  // @ts-expect-error a message needs its id written down
  defineConfig({ box: open, example: () => ({ type: 'order.placed', data: {} }) })
})

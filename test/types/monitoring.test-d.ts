/** What compiles of monitoring, and what does not. */
import type { PoolClient } from 'pg'
import { expectTypeOf, test } from 'vitest'
import { unchecked, type Box } from 'oncebox'
import { monitoring, type Monitoring } from 'oncebox/monitoring'

const _messages = { charged: unchecked<{ cents: number }>() }
declare const box: Box<typeof _messages, PoolClient>
declare const other: Box<{ [type: string]: ReturnType<typeof unchecked<string>> }, { query: string }>

test('metrics are text', () => {
  expectTypeOf(box.metrics).toEqualTypeOf<() => Promise<string>>()
})

test('it takes a box, a list of boxes of any kind, or names for them', () => {
  expectTypeOf(monitoring(box)).toEqualTypeOf<Monitoring>()
  monitoring([box, other])
  monitoring({ eu: box, us: other })
  // @ts-expect-error no box
  monitoring({ eu: 'box' })
  // @ts-expect-error no box
  monitoring()
})

test('options are those that there are', () => {
  monitoring(box, { maxLagMs: 1_000, reasons: true, authorize: (request) => request.headers.has('authorization') })
  monitoring(box, {
    async authorize(request, page) {
      expectTypeOf(request).toEqualTypeOf<Request>()
      expectTypeOf(page).toEqualTypeOf<'metrics' | 'healthz' | 'readyz'>()
      return new Response(null, { status: 403 })
    },
  })
  // @ts-expect-error no such option
  monitoring(box, { maxLag: 1 })
  // @ts-expect-error an answer that is neither yes nor no
  monitoring(box, { authorize: () => 'yes' })
})

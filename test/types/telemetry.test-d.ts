/** `telemetry` of a box takes false, and nothing else; our shapes of OpenTelemetry are those of its package. */
import type { Context, ContextManager, Span, TextMapPropagator, TracerProvider } from '@opentelemetry/api'
import type pg from 'pg'
import { expectTypeOf, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type * as ours from '../../src/telemetry/otel.js'

declare const pool: pg.Pool

test('telemetry is false, or left out', () => {
  createBox({ db: fromPg(pool), telemetry: false })
  createBox({ db: fromPg(pool) })
  // @ts-expect-error -- spans are made where OpenTelemetry is set up: there is nothing to switch on
  createBox({ db: fromPg(pool), telemetry: true })
})

test('what OpenTelemetry registers fits what we look for', () => {
  expectTypeOf<Context>().toExtend<ours.OtelContext>()
  expectTypeOf<Span>().toExtend<ours.Span>()
  expectTypeOf<TracerProvider>().toHaveProperty('getTracer')
  expectTypeOf<ContextManager>().toHaveProperty('with')
  expectTypeOf<TextMapPropagator>().toHaveProperty('extract')
})

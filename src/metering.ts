/** The metrics of a box, as Prometheus and OpenTelemetry get them. */
import { plainWords } from './failure.js'
import { createMetered, type Metered } from './metrics/index.js'
import { observeWithOtel } from './metrics/otel.js'
import { toPrometheus } from './metrics/prometheus.js'
import { watch, type Runtime } from './runtime.js'

export interface Metering extends Metered {
  text(): Promise<string>
  /** From the first start on OpenTelemetry is told, if the application has set it up by then. */
  start(): void
  /** From here on OpenTelemetry is told what this process has counted alone: the pool may be closed any moment. */
  stop(): void
}

export function createMetering(runtime: Runtime): Metering {
  const { db, metrics } = runtime
  const trouble = watch(runtime, { name: 'metrics', where: { part: 'metrics' }, of: 'the database' })
  const metered = createMetered({ db, metrics, trouble, log: runtime.log })
  const failed = (error: unknown, metric: string | undefined): void => {
    const about = { ...(metric !== undefined && { metric }), error: plainWords(error) }
    runtime.log.warn(
      about,
      'the meter of OpenTelemetry threw; it is not told what it throws at, and nothing else changes',
    )
  }
  let observed = false
  let running = false
  return {
    ...metered,
    async text() {
      return toPrometheus([{ box: metered.name, families: await metered.collect() }])
    },
    start() {
      running = true
      if (observed || !runtime.telemetry) return
      const collect = () => (running ? metered.collect() : Promise.resolve(metered.counted()))
      observed = observeWithOtel({ name: metered.name, registry: metrics.registry, collect, failed })
    },
    stop() {
      running = false
    },
  }
}

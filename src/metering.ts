/** The metrics of a box, as Prometheus and OpenTelemetry get them. */
import { safeWords } from './failure.js'
import { createMetered, type Metered } from './metrics/index.js'
import { createMinutes } from './metrics/minutes.js'
import { observeWithOtel } from './metrics/otel.js'
import { toPrometheus } from './metrics/prometheus.js'
import { watch, type Runtime } from './runtime.js'

export interface Metering extends Metered {
  text(): Promise<string>
  /** From the first start on OpenTelemetry is told, if the application has set it up by then. Minutes are written. */
  start(): void
  /** From here on OpenTelemetry is told what this process has counted alone: the pool may be closed any moment. */
  stop(): void
  /** When nothing runs any more: writes down the rest of the minute, and waits for that for so long at most. */
  end(timeoutMs: number): Promise<void>
}

export function createMetering(runtime: Runtime): Metering {
  const { db, metrics } = runtime
  const trouble = watch(runtime, { name: 'metrics', where: { part: 'metrics' }, of: 'the database' })
  const { read, ...metered } = createMetered({ db, metrics, trouble, log: runtime.log })
  const history = watch(runtime, { name: 'history', where: { part: 'history' }, of: 'the database' })
  const minutes = runtime.history ? createMinutes({ db, metrics, trouble: history, read }) : undefined
  const failed = (error: unknown, metric: string | undefined): void => {
    const about = { ...(metric !== undefined && { metric }), error: safeWords(error) }
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
      runtime.traces.background(() => minutes?.start())
      if (observed || !runtime.telemetry) return
      const collect = () => (running ? metered.collect() : Promise.resolve(metered.counted()))
      observed = observeWithOtel({ name: metered.name, registry: metrics.registry, collect, failed })
    },
    stop() {
      running = false
    },
    end: async (timeoutMs) => minutes?.stop(timeoutMs),
  }
}

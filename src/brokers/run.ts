import { createTurns } from '../in-turn.js'
import type { Deliver, Source, Warn } from './source.js'

export type Report = (problem?: unknown) => void

/** What a source has of its box while it runs. */
export interface Ends {
  readonly deliver: Deliver
  readonly report: Report
  readonly warn: Warn
}

/** A source at work, from a start to its stop. */
export interface Run {
  /** Stops pulling, waits for what is in flight, and closes. */
  end(): Promise<void>
}

/** A source that begins a run when it is started and ends it when it is stopped: one at a time, one after the other. */
export function createRunner(name: string, begin: (box: Ends) => Promise<Run>): Source & { readonly name: string } {
  const inTurn = createTurns()
  let run: Run | undefined
  return {
    name,
    start: (deliver, report = () => undefined, warn = () => undefined) =>
      inTurn(async () => {
        run ??= await begin({ deliver, report, warn })
      }),
    stop: () =>
      inTurn(async () => {
        const ending = run
        run = undefined
        await ending?.end()
      }),
  }
}

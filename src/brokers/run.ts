import { createTurns } from '../in-turn.js'
import { invalid } from '../options.js'
import type { Deliver, Source, Warn } from './source.js'

export type Report = (problem?: unknown) => void

/** The box that a source brings its messages to, as far as the source sees it. */
export interface Receiver {
  readonly deliver: Deliver
  readonly report: Report
  readonly warn: Warn
}

/** A source at work, from a start to its stop. */
export interface Run {
  /** Stops pulling, waits for what is in flight, and closes. */
  end(): Promise<void>
  /** What of the start may take long: a stop that follows does not wait for it. If it rejects, nothing runs. */
  readonly started?: Promise<void>
}

/** A source that begins a run when it is started and ends it when it is stopped: one at a time, one after the other. */
export function createRunner(name: string, begin: (box: Receiver) => Promise<Run>): Source & { readonly name: string } {
  const inTurn = createTurns()
  let run: (Run & { readonly deliver: Deliver }) | undefined
  return {
    name,
    async start(deliver, report = () => undefined, warn = () => undefined) {
      const own = await inTurn(async () => {
        checkSameBox(name, run?.deliver, deliver)
        return (run ??= { deliver, ...(await begin({ deliver, report, warn })) })
      })
      try {
        await own.started
      } catch (error) {
        if (run === own) run = undefined
        throw error
      }
    },
    stop: () =>
      inTurn(async () => {
        const ending = run
        run = undefined
        await ending?.end()
      }),
  }
}

/** To start a source that runs changes nothing; of two boxes one would get nothing. */
export function checkSameBox(name: string, running: Deliver | undefined, given: Deliver): void {
  if (running === undefined || running === given) return
  throw invalid(`${name} delivers to one box already; make a second source for the second box`)
}

/** What a source reports to its box, where one problem may fall into the time of another. */
export interface Reports {
  /** Every problem that lasts; its end, without one, only once. */
  readonly tell: Report
  /** A problem that is over as soon as it is told, such as a loss. One that lasts is not ended by it. */
  readonly tellPassing: (problem: unknown) => void
}

export function createReports(report: Report): Reports {
  let isTroubled = false
  return {
    tell(problem) {
      if (problem === undefined && !isTroubled) return
      isTroubled = problem !== undefined
      report(problem)
    },
    tellPassing(problem) {
      report(problem)
      if (!isTroubled) report()
    },
  }
}

/** What changes messages, and what is refused. */
import type { StateName } from './message.js'

/** What somebody may do. */
export type Action = 'read' | 'bodies' | 'retry' | 'discard' | 'answer' | 'pause'

/** How many messages a change would take. */
export interface Counted {
  readonly count: number
  readonly states: Readonly<Partial<Record<StateName, number>>>
  readonly at: string
  /** Has to come back with the change, within ten minutes. */
  readonly confirmation: string
  /** The change needs a rate. */
  readonly needsRate: boolean
}

export interface Job {
  readonly id: string
  readonly box: string
  readonly verb: 'retry' | 'discard'
  /** `stopped`: more than half of the last fifty failed again. */
  readonly state: 'running' | 'done' | 'cancelled' | 'stopped' | 'failed'
  /** Absent if it may quote a payload and bodies may not be seen. */
  readonly query?: string
  readonly by?: string
  readonly reason?: string
  readonly total: number
  /** Changed so far. */
  readonly done: number
  /** Looked at and left alone: somebody else has changed them, or they were refused again. */
  readonly skipped: number
  /** Of a retry, what became of those that are done; the rest are still to run. */
  readonly handled: number
  readonly failedAgain: number
  readonly perSecond?: number
  readonly startedAt: string
  readonly endedAt?: string
  readonly problem?: string
  /** Another process has carried it on, after the one that carried it went away. */
  readonly resumed?: true
}

export interface Jobs {
  /** Newest first, of all processes. */
  readonly jobs: readonly Job[]
}

export interface Done {
  readonly done: true
}

/** What is not answered with 2xx. */
export interface ProblemAnswer {
  readonly error: {
    readonly code: ProblemCode
    /** What to do about it. */
    readonly message: string
    /** The field of the input it is about. */
    readonly field?: string
    /** With COUNT_CHANGED: what there is now. */
    readonly counted?: Counted
    /** The right that is missing. */
    readonly needs?: string
  }
}

export type ProblemCode =
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'CROSS_SITE'
  | 'HOST_UNKNOWN'
  | 'NOT_LOCAL'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'NOT_JSON'
  | 'TOO_LARGE'
  | 'INPUT_INVALID'
  | 'QUERY_INVALID'
  | 'CURSOR_INVALID'
  | 'CONFIRMATION_INVALID'
  | 'COUNT_CHANGED'
  | 'RATE_REQUIRED'
  | 'REASON_REQUIRED'
  | 'NOTHING_MATCHES'
  | 'TOO_MANY'
  | 'TOO_FAST'
  | 'BUSY'
  | 'TIMEOUT'
  | 'CONFLICT'
  | 'DATABASE_AWAY'
  | 'COMMIT_UNCERTAIN'
  | 'INTERNAL'

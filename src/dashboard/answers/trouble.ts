/** What needs a person: failures, quarantine, keys. */
import type { FailureHead } from './message.js'

export interface FailureGroup {
  readonly fingerprint: string
  readonly consumer: string
  readonly types: readonly string[]
  readonly name: string
  readonly code?: string
  /** Name and code of its innermost cause. */
  readonly cause?: string
  /** With ‹n›, ‹id› and ‹text› in place of what varies. Absent unless bodies may be seen. */
  readonly message?: string
  readonly count: number
  /** There are at least so many: no further was counted, and the times and hours are of these. */
  readonly atLeast?: true
  readonly firstAt: string
  readonly lastAt: string
  /** Keys that one of them blocks; absent if none does. */
  readonly blocks?: { readonly keys: number; /** There are at least so many. */ readonly atLeast: boolean }
  /** By hour, the last one last. */
  readonly hours: readonly number[]
  /** The newest of them. */
  readonly sample: { readonly source: string; readonly id: string }
  /** The query that finds all of them. */
  readonly query: string
}

export interface Failures {
  readonly at: string
  /** Largest first. */
  readonly groups: readonly FailureGroup[]
  /** How many there are, on all pages. */
  readonly total: number
  /** How many messages are in them. */
  readonly examined: number
  /** False: there are more groups, or more in one of them, than were looked at. */
  readonly complete: boolean
  readonly cursor?: string
}

export interface Quarantine {
  readonly reasons: readonly {
    readonly reason: string
    readonly consumer: string
    readonly count: number
    /** There are at least so many. */
    readonly atLeast: boolean
    readonly oldestAt?: string
  }[]
}

export interface BlockedKey {
  readonly consumer: string
  readonly key: string
  /** The message that blocks it. */
  readonly front: {
    readonly source: string
    readonly id: string
    readonly type: string
    readonly state: 'dead' | 'quarantined'
    readonly reason?: string
    readonly attempts: number
    readonly error?: FailureHead
  }
  /** Since when. */
  readonly blockedAt: string
  readonly waiting: number
  /** There are at least so many. */
  readonly atLeast: boolean
  readonly oldestWaitingAt?: string
  /** The first of those that wait. */
  readonly next: readonly {
    readonly source: string
    readonly id: string
    readonly type: string
    readonly receivedAt: string
  }[]
}

/** A key that is not blocked, and has more than one message waiting. */
export interface DeepKey {
  readonly consumer: string
  readonly key: string
  /** A worker has the first of them in hand. */
  readonly running: boolean
  /** Without what runs. */
  readonly waiting: number
  /** There are at least so many. */
  readonly atLeast: boolean
  /** When the first of them was received. */
  readonly oldestAt: string
}

export interface Keys {
  /** Most waiting first, on this page. */
  readonly keys: readonly BlockedKey[]
  /** Most waiting first. On the first page alone. */
  readonly deepest: readonly DeepKey[]
  /** The deepest were looked for in a part of what waits: a key with a small share of it may be left out. */
  readonly sampled?: true
  readonly cursor?: string
}

/** What the doctor has found, the serious first. */
export interface Doctor {
  /** When it looked. */
  readonly at: string
  /** It looks still: these are the findings of the time before, or those so far. */
  readonly looking?: true
  readonly findings: readonly {
    readonly code: string
    readonly severity: 'serious' | 'warning' | 'note'
    readonly what: string
    readonly why: string
    readonly figures: Readonly<Record<string, number | string>>
    /** The call, command or statement that mends it. */
    readonly fix: string
  }[]
}

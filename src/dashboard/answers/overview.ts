/** What the answers about a whole box are made of. */
import type { Action } from './change.js'
import type { FailureHead, StateName } from './message.js'

export interface Session {
  readonly user?: string
  readonly may: readonly Action[]
  readonly title: string
  readonly environment?: string
  /** Nobody changes anything here, whatever they may elsewhere. */
  readonly readOnly: boolean
  readonly boxes: readonly { readonly name: string; readonly schema: string }[]
  readonly limits: {
    readonly pageSize: number
    /** Above so many messages a change needs a rate. */
    readonly rateAbove: number
    readonly mostPerSecond: number
  }
}

export type Counts = Readonly<Record<StateName, number>> & {
  /** The age of the oldest message that is due, in ms. */
  readonly lagMs: number
  /** Some of the counts are estimates. */
  readonly estimated?: true
}

export interface ConsumerStatus extends Counts {
  /** `''` has what was refused before it reached a consumer. */
  readonly name: string
  readonly paused: boolean
  /** Since when it is, if the audit still has it. */
  readonly pausedAt?: string
  /** How many of its keys are blocked, as far as they were looked for; absent if none is. */
  readonly blockedKeys?: number
  readonly order: 'none' | 'key'
  /** How its messages run; undefined if another process has declared it. */
  readonly mode?: 'stored' | 'inline' | 'direct'
  readonly types: readonly string[]
  /** The lag beyond which it is behind. */
  readonly limitMs?: number
  /** Absent if nobody recorded the last minute. */
  readonly rates?: Rates
}

/** Of the last whole minute. */
export interface Rates {
  /** New messages; copies are no part of them. */
  readonly inPerSecond: number
  /** Messages that were handled. */
  readonly outPerSecond: number
  readonly duplicatesPerSecond: number
  /** Runs that failed. */
  readonly failedPerSecond: number
}

export interface SinkStatus {
  /** `''` has events that no sink wants yet. */
  readonly name: string
  readonly types?: readonly string[]
  /** Host and process of those that have it attached. */
  readonly processes: readonly string[]
  /** To be published now, and after a delay. `most` is as far as each is counted. */
  readonly ready: number
  readonly delayed: number
  readonly dead: number
  /** When the first of the dead was given up, of those that were counted. */
  readonly deadSince?: string
  readonly most: number
  /** How long the event has been due that has been due for longest, in ms. */
  readonly lagMs: number
  /** Events published in the last whole minute, by all processes. Absent if nobody recorded it. */
  readonly publishedPerSecond?: number
  /** A relay publishes to it right now. */
  readonly held: boolean
  /** A relay of this process finds its destination down. Events need no failure of their own for that. */
  readonly failing?: true
  /** Since when it does. */
  readonly failingSince?: string
  /** The last failure of an event that waits for another try. */
  readonly error?: FailureHead
  /** What the newest of its dead events failed with. */
  readonly deadError?: FailureHead
}

/** Something that needs a person. The words are the interface's. */
export interface Finding {
  readonly code: 'behind' | 'sink-behind' | 'sink-dead' | 'blocked' | 'quarantined' | 'dead' | 'unhealthy'
  readonly severity: 'serious' | 'warning'
  readonly consumer?: string
  readonly sink?: string
  readonly count?: number
  readonly lagMs?: number
  readonly text?: string
  /** Since when it is so, as far as that is on record. */
  readonly since?: string
}

export interface Overview {
  readonly at: string
  readonly box: string
  readonly health: {
    readonly ok: boolean
    readonly database: boolean
    readonly sources: boolean
    /** How many sources this process has: of none, `sources` says nothing. */
    readonly attached: number
    readonly lagMs: number
    readonly reasons: readonly string[]
  }
  readonly server: { readonly version: string; readonly ms: number }
  readonly consumers: readonly ConsumerStatus[]
  /** Of all consumers; absent if nobody recorded the last minute. */
  readonly rates?: Rates
  readonly sinks: readonly SinkStatus[]
  /** Keys that are blocked, as far as they were looked for, and how many messages wait behind these. */
  readonly blocked: {
    readonly keys: number
    readonly complete: boolean
    readonly waiting: number
    /** There are at least so many. */
    readonly atLeast: boolean
  }
  /** Worst first. */
  readonly findings: readonly Finding[]
}

export interface Vocabulary {
  readonly qualifiers: readonly { readonly name: string; readonly words: string; readonly bodies: boolean }[]
  readonly states: readonly StateName[]
  readonly reasons: readonly string[]
  readonly consumers: readonly { readonly name: string; readonly order: 'none' | 'key' }[]
  readonly types: readonly string[]
  readonly sinks: readonly string[]
}

export interface Outbox {
  readonly types: readonly (Counts & { readonly type: string })[]
  readonly sinks: readonly SinkStatus[]
}

export interface AuditRow {
  readonly at: string
  readonly action: string
  readonly by?: string
  readonly role?: string
  readonly login?: string
  /** What was asked for and done. What may quote a payload is left out unless bodies may be seen. */
  readonly detail: Readonly<Record<string, unknown>>
}

export interface Audit {
  readonly records: readonly AuditRow[]
  readonly cursor?: string
}

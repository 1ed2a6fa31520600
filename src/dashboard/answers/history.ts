/** What the last hours and days were like. */

/** Values of a step each. Null: nobody recorded it. */
export interface Series {
  /** New messages within the step; copies are no part of them. */
  readonly received: readonly (number | null)[]
  readonly handled: readonly (number | null)[]
  /** Runs that failed within the step. */
  readonly failed: readonly (number | null)[]
  readonly duplicates: readonly (number | null)[]
  /** The most that waited at a time. */
  readonly pending: readonly (number | null)[]
  /** The longest that the oldest message was due. Null also while the consumer is paused: then nobody is behind. */
  readonly lagMs: readonly (number | null)[]
}

export interface History {
  readonly at: string
  readonly stepMs: number
  /** Seconds since 1970: where each step begins. At most 300, oldest first; the last one is over. */
  readonly times: readonly number[]
  /** Of all consumers: sums, and the longest lag. */
  readonly total: Series
  /** By name; of those that had something to do. */
  readonly consumers: Readonly<Record<string, Series>>
}

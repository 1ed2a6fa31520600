/** Messages, as answers show them. */
export type StateName = 'pending' | 'processing' | 'handled' | 'dead' | 'quarantined' | 'discarded'

/** An error without its words: all that may be seen without the right to see bodies. */
export interface FailureHead {
  readonly name: string
  readonly code?: string
  /** Absent unless bodies may be seen. */
  readonly message?: string
}

export interface FailureTree extends FailureHead {
  readonly stack?: string
  readonly cause?: FailureTree
}

/** A message and a consumer, as a list shows them. */
export interface Item {
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly type: string
  readonly key?: string
  readonly state: StateName
  readonly reason?: string
  readonly attempts: number
  readonly receivedAt: string
  readonly handledAt?: string
  /** Its number in quarantine. */
  readonly n?: string
  readonly error?: FailureHead
  readonly detail?: string
}

/** A part of the query, for chips. */
export interface Term {
  readonly qualifier: string
  readonly values: readonly string[]
  /** As it was written, with its place in the query. */
  readonly from: number
  readonly to: number
}

export interface Messages {
  readonly terms: readonly Term[]
  readonly items: readonly Item[]
  /** Leads to the next page; absent at the end. A page may be short, or empty, and have one. */
  readonly cursor?: string
}

/** How many messages fit a query, by the states that it leaves possible. */
export interface Tally {
  readonly states: Readonly<Partial<Record<StateName, StateCount>>>
}

export interface StateCount {
  readonly count: number
  /** There are at least so many: no further was looked. */
  readonly atLeast: boolean
  /** From the statistics of the database. */
  readonly estimated?: true
}

/** A payload. Either its text, or why there is none. */
export interface Payload {
  /** Of what is stored, in UTF-8. */
  readonly bytes: number
  /** JSON, exactly as stored; of a long one the first part, and `whole` is false. */
  readonly text?: string
  /** What could not be decoded, in base64. */
  readonly base64?: string
  readonly whole: boolean
  /** `hidden`: no right to see it. `unredactable`: it cannot be shown with what is secret taken out. */
  readonly withheld?: 'hidden' | 'unredactable'
  /** Something was taken out of it, or changed. */
  readonly redacted?: true
}

export interface Attempt {
  readonly attempt: number
  readonly at: string
  /** How long it took. Absent if an older version recorded it, or nothing ran. */
  readonly ms?: number
  /** Host and process id of the process that ran it. */
  readonly worker?: string
  readonly error: FailureTree
}

export interface Effect {
  readonly name: string
  readonly state: 'unknown' | 'done'
  readonly idempotencyKey: string
  readonly calledAt: string
  readonly doneAt?: string
  readonly calls: number
  /** JSON. Absent unless bodies may be seen. */
  readonly result?: string
}

/** What became of a message for one consumer; or one body in quarantine. */
export interface Fate extends Item {
  /** It is an event of the outbox, and its consumer is a sink. */
  readonly outbox?: true
  readonly subject?: string
  readonly time?: string
  readonly correlationId: string
  readonly causationId?: string
  /** Absent unless bodies may be seen. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Payload
  readonly result?: Payload
  /** After so many attempts it is dead; absent if its consumer is of another process, or decides case by case. */
  readonly mostAttempts?: number
  /** The failure it has now. */
  readonly failure?: FailureTree
  /** Of a dead one: the group of failures that it is in. */
  readonly fingerprint?: string
  readonly history: readonly Attempt[]
  readonly effects: readonly Effect[]
  /** When it runs next, if it waits. */
  readonly dueAt?: string
  /** Retention leaves it alone until then. Absent of what stays until it is settled. */
  readonly keptUntil?: string
  /** The key's lane is blocked by it, or by one before it. */
  readonly blocked: boolean
  readonly timeline: readonly {
    readonly at: string
    readonly what: TimelineEvent
    readonly attempt?: number
    readonly effect?: string
  }[]
}

export type TimelineEvent = 'sent' | 'received' | 'failed' | 'effect-called' | 'effect-done' | 'handled' | 'due'

export interface MessageAnswer {
  /** Those of the journal first. If nothing was received under this id, what waits in the outbox for each sink. */
  readonly fates: readonly Fate[]
}

export interface Conversation {
  /** The message that caused it, wherever it is in the boxes of this dashboard. */
  readonly cause?: Link
  readonly caused: readonly Link[]
  /** False: only as far was looked as is cheap. */
  readonly complete: boolean
}

export interface Link {
  readonly box: string
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly type: string
  readonly state: StateName
  readonly receivedAt: string
  /** The id that it names as its cause. */
  readonly cause?: string
  /** An event, which is still in the outbox of its box: `consumer` is the sink that it is to be published to, if there is one. */
  readonly outbox?: true
}

export interface Conflict {
  /** What came first, and counts; absent if retention has taken it. */
  readonly first?: Fate
  readonly second: Fate
}

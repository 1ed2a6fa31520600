/** A consumer of this process, for statements and links that must know it before it is registered. */
export interface LocalConsumer {
  readonly name: string
  readonly ordered: boolean
  readonly retainMs: number
  readonly untimed: string
  readonly types: readonly string[]
  /** Has a business key. */
  readonly identity: boolean
}

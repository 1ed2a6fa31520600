/** A member of a consumer group, of either client. */
import type { Assigned, KafkaBatch, Position } from './client.js'

export interface ConsumerSettings {
  readonly groupId: string
  readonly topics: readonly (string | RegExp)[]
  readonly fromBeginning: boolean
  readonly concurrency: number
  readonly consumer: Readonly<Record<string, unknown>>
}

export interface ConsumerEvents {
  /** Messages of one partition. Everything before the offset that is committed must be done with. */
  eachBatch(payload: KafkaBatch, commit: (next: string) => Promise<void>): Promise<void>
  /** Partitions were assigned anew. Nothing is read of them until this has resolved; it never rejects. */
  joined(assigned: readonly Assigned[], commit: (positions: Position[]) => Promise<void>): Promise<void>
  /** Partitions were taken away, perhaps to be assigned anew in a moment. */
  left(): void
  /** The consumer has given up, and has disconnected. */
  crashed(error: unknown): void
}

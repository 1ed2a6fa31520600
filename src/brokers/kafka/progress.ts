/** How far a member of the group has got in the partitions that it was assigned. Another assignment begins anew. */
import { nameOf, type Position } from './client.js'

type Partition = Omit<Position, 'offset'>

export class Progress {
  /** Where those go on of which something was delivered. */
  readonly #next = new Map<string, string>()
  /** Where the group was when they were assigned: what is deleted before the first of it is read is missed there. */
  readonly #begins = new Map<string, string>()
  /** Deliveries in a row that got nowhere. They outlive an assignment: a partition often comes back. */
  readonly #failures = new Map<string, number>()

  /** Nothing is known of what is assigned now. */
  reset(): void {
    this.#next.clear()
    this.#begins.clear()
  }

  /** The group was here. */
  beginsAt(position: Position): void {
    this.#begins.set(nameOf(position), position.offset)
  }

  /** The offset that comes next, as far as that is known. */
  expected(partition: Partition): string | undefined {
    return this.#next.get(nameOf(partition)) ?? this.#begins.get(nameOf(partition))
  }

  /** Has nothing of it been delivered? */
  isUntouched(partition: Partition): boolean {
    return !this.#next.has(nameOf(partition))
  }

  /** It goes on here. */
  goesOnAt(position: Position): void {
    this.#next.set(nameOf(position), position.offset)
  }

  worked(partition: Partition): void {
    this.#failures.delete(nameOf(partition))
  }

  /** A delivery got nowhere. Answers how many had before it, in a row. */
  failed(partition: Partition): number {
    const name = nameOf(partition)
    const before = this.#failures.get(name) ?? 0
    this.#failures.set(name, before + 1)
    return before
  }
}

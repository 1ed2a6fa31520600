/** What is missing: places of a group that the log of their partition no longer has. Each is told once. */
import { OnceboxError } from '../../errors.js'
import type { Reports } from '../run.js'
import type { Log } from './ask.js'
import { nameOf, type Position } from './client.js'

const ANEW = 'give it another source, or its records are taken for copies of those that had their offsets'

export class Missing {
  readonly #report: Reports['tellPassing']
  readonly #fromBeginning: boolean
  readonly #told = new Set<string>()
  /** Where the group was in each partition, as far as it is known here: committed from here, or found when it was assigned. */
  readonly #reached = new Map<string, Position>()

  constructor(report: Reports['tellPassing'], fromBeginning: boolean) {
    this.#report = report
    this.#fromBeginning = fromBeginning
  }

  reached(position: Position): void {
    this.#reached.set(nameOf(position), position)
  }

  /** Compares where the group is, or has nothing committed, with the log. Answers whether the log still has it. */
  compare(at: Position, log: Log): boolean {
    const offset = BigInt(at.offset)
    if (offset >= 0n) this.#compareCommitted(at, log)
    else this.#compareReached(at, log)
    return offset >= log.low && offset <= log.high
  }

  /** A topic may have fewer partitions than it had. */
  comparePartitions(topic: string, logs: ReadonlyMap<number, Log>): void {
    for (const at of this.#reached.values()) {
      if (at.topic === topic && !logs.has(at.partition)) {
        this.#tell(at, `it is gone, so the topic was made anew: ${ANEW}`)
      }
    }
  }

  /** Messages were expected here, and the next one that came has the offset `found`. */
  compareGap(expected: Position, found: string, log: Log): void {
    // What lies between the two, and was not deleted, is marks of transactions, or was compacted.
    if (BigInt(expected.offset) < log.low) this.#compareCommitted(expected, { ...log, high: BigInt(found) })
  }

  /** The next message comes before the one that was expected. */
  wentBack(expected: Position, found: string): void {
    this.#tell(expected, `the next message has the offset ${found}, so the topic was made anew, or cut: ${ANEW}`)
  }

  #compareCommitted(at: Position, { low, high }: Log): void {
    const offset = BigInt(at.offset)
    if (offset < low) {
      const lost = this.#fromBeginning ? low - offset : high - offset
      const how = this.#fromBeginning ? '' : ', or are passed over for fromBeginning is false'
      this.#tell(at, `${lost} messages were deleted before they were read${how}; raise retention.ms of the topic`)
    }
    if (offset > high) this.#tell(at, `the log ends at ${high}, so the topic was made anew, or cut: ${ANEW}`)
  }

  /**
   * With a topic the offsets of its groups are deleted; and where its offset is gone from the log, kafkajs commits that it begins
   * at one of the ends. We know what it was.
   */
  #compareReached(partition: Omit<Position, 'offset'>, log: Log): void {
    const before = this.#reached.get(nameOf(partition))
    if (!before) return
    this.#compareCommitted(before, log)
    this.#tell(before, `the group has lost this offset, so the topic was made anew: ${ANEW}`)
  }

  #tell(at: Position, what: string): void {
    const { topic, partition, offset } = at
    const place = `${nameOf(at)}:${offset}`
    if (this.#told.has(place)) return
    this.#told.add(place)
    // The broker is there, or is not: it is the messages that are gone.
    this.#report(new OnceboxError('NOT_FOUND', `partition ${partition} of ${topic}, offset ${offset}: ${what}`))
  }
}

/**
 * Keeps one connection of the pool out of handlers' transactions, of whatever box: statements outside them, such as claims, must
 * not wait for them, nor must heartbeats where no connection listens. With a pool of one there is none to keep.
 */
export class Room {
  /** How many transactions fit; undefined if the pool does not tell. */
  readonly size: number | undefined
  #inside = 0
  readonly #waiting: (() => void)[] = []

  constructor(connections: number | undefined) {
    this.size = connections === undefined ? undefined : Math.max(1, connections - 1)
  }

  /** True if transactions hold all the connections that they may. */
  get isFull(): boolean {
    return this.size !== undefined && this.#inside >= this.size
  }

  async enter(): Promise<void> {
    if (this.size === undefined || this.#inside < this.size) this.#inside += 1
    // A transaction that ends hands its place to the next one that waits, so that no other slips in between.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#inside -= 1
  }
}

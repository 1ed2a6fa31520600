/** The lease of a relay on some shards of its sink: kept while it works, and looked at by the clock before it publishes. */
import { EXTEND_SHARDS, type ShardsHeld } from '../postgres/sql/shards.js'
import type { Runtime } from '../runtime.js'
import { keepLease } from '../worker/lease.js'

export interface ShardLease {
  readonly token: string
  readonly shards: readonly number[]
  /** Why it is lost, if it is known to be. */
  readonly lost: string | undefined
  /** Only so many of its shards are left: the others were given back. */
  keep(shards: number): void
  /**
   * Whether it stands, by the clock. A process that was frozen asks before it publishes: another relay may have published
   * what it has read, and newer events since.
   */
  stands(): Promise<boolean>
  end(): void
}

/** `asked`: when the shards were claimed, before the answer was there. */
export function leaseShards(
  { db }: Runtime,
  held: ShardsHeld,
  leaseMs: number,
  { shards, asked }: { readonly shards: readonly number[]; readonly asked: number },
): ShardLease {
  let lost: string | undefined
  let count = shards.length
  let since = asked
  const extend = async (): Promise<number> => {
    const now = performance.now()
    const [row] = await db.run(EXTEND_SHARDS, { ...held, lease: leaseMs })
    const extended = Number(row!.extended)
    if (extended >= count) since = now
    return extended
  }
  const end = keepLease({ extend: async () => (await extend()) > 0 }, leaseMs, (why) => (lost ??= why))
  return {
    token: held.token,
    shards,
    get lost() {
      return lost
    },
    keep(left) {
      count = left
    },
    async stands() {
      while (lost === undefined && performance.now() - since >= leaseMs) {
        if ((await extend()) < count) lost ??= 'another relay has claimed some of it'
      }
      return lost === undefined
    },
    end,
  }
}

/** Known: what a consumer knows of a message, and what is to be said of one that is not new. */
import { hashOf } from '../body.js'
import type { QuarantineReason } from '../message.js'
import { IS_FRESH, type Horizon } from '../postgres/sql/inline.js'
import { CLASSIFY, CONFIRM, type KnownRow, type Question } from '../postgres/sql/receive.js'
import type { Runtime } from '../runtime.js'
import { saysTheSame, type Came } from './compare.js'
import type { ConsumerDeclaration } from './consumer.js'
import { hasIdentity, identityOf } from './identity.js'
import { fromResult, parseFailure, quarantined, type Ackable } from './outcome.js'
import type { Prepared } from './prepare.js'
import { quarantine, refuse } from './quarantine.js'

/** Why a message is a conflict. */
export const CONFLICT = 'the id is known with another body, or another type'

/** What is known of a message for a consumer. */
export interface Known {
  /** Same type, and a copy by what is compared. */
  readonly same: boolean
  /** That had to be found out: neither its fingerprint nor its text is the same. */
  readonly reworded: boolean
  /** `arriving`: it runs on arrival, and its source still has it: unless it is handled, it waits for the source. */
  readonly state: KnownRow['state']
  readonly result: string | null
  readonly error: string | null
  readonly reason: QuarantineReason | null
  /** Commits wait for a standby. */
  readonly synchronous: boolean
  /** How long ago it was received. */
  readonly ageMs: number
  /** How long its consumer remembers messages; undefined if no process has said so. */
  readonly retainMs: number | undefined
}

/** `type` undefined: the caller does not know it. */
type Asked = Came & Pick<Prepared, 'id' | 'source' | 'ids'> & { readonly type: string | undefined }

export async function classify(
  runtime: Runtime,
  pairs: readonly { readonly consumer: string; readonly message: Asked }[],
  tx?: unknown,
): Promise<(Known | undefined)[]> {
  const rows = await runtime.db.run(
    CLASSIFY,
    pairs.map(({ consumer, message }): Question => {
      const key = [...identityOf(message, consumer), hashOf(message), message.body] as const
      return hasIdentity(message, consumer) ? [...key, message.id, message.source] : [...key, null, null, message.type]
    }),
    tx,
  )
  // Filled: callers ask `every`, which would pass over holes, and take what is unknown for handled.
  const known = new Array<Known | undefined>(pairs.length).fill(undefined)
  for (const { at, same, body, key, envelope, synchronous, age, retain, ...rest } of rows) {
    const times = { ageMs: Number(age), retainMs: retain === null ? undefined : Number(retain) }
    const reworded = body !== null
    known[Number(at)] = {
      ...{ ...rest, ...times, reworded, synchronous: synchronous === 'true' },
      same: same === 'true' && (!reworded || saysTheSame({ body, key, envelope }, pairs[Number(at)]!.message)),
    }
  }
  return known
}

/**
 * Before a known message is acknowledged: its row must be as safe as if it had been stored just now. The commit that wrote
 * it may have been told to wait no longer for the standby, or still be waiting. In a transaction, its COMMIT waits: one that
 * has written nothing would not.
 */
export async function confirmKnown(
  runtime: Runtime,
  known: readonly (Known | undefined)[],
  tx?: unknown,
): Promise<void> {
  if (known.some((one) => one?.synchronous)) await runtime.db.run(CONFIRM, 'known', tx)
}

/** The outcome of a message that needs nothing more from its sender. */
export function knownOutcome({ metrics }: Runtime, consumer: string, known: Known): Ackable {
  if (known.state === 'dead') return { outcome: { consumer, status: 'dead', error: parseFailure(known.error) } }
  if (known.state === 'quarantined') return quarantined(consumer, known.reason ?? 'invalid')
  metrics.consumer(consumer).duplicate(known)
  if (known.state !== 'handled') return { outcome: { consumer, status: 'duplicate' } }
  return { outcome: { consumer, status: 'duplicate', result: fromResult(known.result) } }
}

/** `ahead`: its time is in the future, by the database's clock. */
export function tooOld(message: Prepared, ahead: boolean): string {
  if (message.heldSince !== undefined) {
    return `it has waited in quarantine since ${message.heldSince}, or was sent, beyond the dedup horizon`
  }
  if (ahead)
    return `its time, ${message.time}, is in the future, so it counts as untimed, and untimed messages are not accepted`
  return message.time === undefined
    ? 'it carries no time, and untimed messages are not accepted'
    : `its time, ${message.time}, is beyond the dedup horizon`
}

export function horizonOf({ name, options }: ConsumerDeclaration): Horizon {
  return { consumer: name, retainMs: options.retainMs, untimed: options.untimed }
}

export interface Judging {
  readonly horizon: Horizon
  /** In the caller's transaction. */
  readonly tx?: unknown
  /** The caller does not know the type. */
  readonly untyped?: boolean
}

/** The outcomes of messages that are known already; undefined for those whose fate is still open. */
export async function judgeKnown(
  runtime: Runtime,
  messages: readonly Prepared[],
  judging: Judging,
): Promise<(Ackable | undefined)[]> {
  const { horizon, tx, untyped } = judging
  const { consumer } = horizon
  const known = await classify(
    runtime,
    messages.map((message) => ({ consumer, message: untyped ? { ...message, type: undefined } : message })),
    tx,
  )
  await confirmKnown(runtime, known, tx)
  const answers: (Ackable | undefined)[] = []
  for (const [at, message] of messages.entries()) {
    const found = known[at]
    if (found === undefined) answers.push(await judgeAge(runtime, message, judging))
    else if (!found.same) {
      await quarantine(runtime, [{ consumer, refused: refuse(message, 'conflict', CONFLICT) }], tx)
      answers.push(quarantined(consumer, 'conflict', CONFLICT))
    } else {
      message.reworded = found.reworded
      answers.push(isOpen(found) ? undefined : knownOutcome(runtime, consumer, found))
    }
  }
  return answers
}

/** Unknown, and not marked either: too old, or retention has just taken it and it is tried again. */
async function judgeAge(runtime: Runtime, message: Prepared, { horizon, tx }: Judging): Promise<Ackable | undefined> {
  const [row] = await runtime.db.run(IS_FRESH, { ...horizon, at: message.time }, tx)
  if (row!.fresh === 'true') return undefined
  const detail = tooOld(message, row!.ahead === 'true')
  await quarantine(runtime, [{ consumer: horizon.consumer, refused: refuse(message, 'too-old', detail) }], tx)
  return quarantined(horizon.consumer, 'too-old', detail)
}

/** Its fate is not decided: somebody runs it, or will. */
function isOpen({ state }: Known): boolean {
  return state === 'failed' || state === 'pending' || state === 'processing' || state === 'arriving'
}

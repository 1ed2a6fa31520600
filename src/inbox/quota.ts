/**
 * A source's part of the quarantine: what does not fit is not taken, and its sender keeps it.
 *
 *     has room ── a message does not fit: told ──> full ── a message fits, and a tenth is free: told ──> has room
 *
 * What need not be quarantined is taken all the same.
 */
import type { Incoming, Outcome } from '../message.js'
import { QUARANTINE_ACCOUNTS } from '../postgres/sql/quarantine.js'
import type { Origin, Runtime } from '../runtime.js'

/** Thrown on the way into quarantine, and caught where the source delivers. */
export class QuarantineFull extends Error {
  constructor({ name, quota }: Origin) {
    const limits = `maxRows ${quota!.maxRows}, maxBytes ${quota!.maxBytes}`
    super(`the quarantine of source ${name} is full (${limits})`)
  }
}

/** When to send again what did not fit: somebody has to look at what is there first. */
const RETRY_MS = 60_000
/** So full it may be to count as having room again. */
const ROOMY = 0.9

/**
 * Delivers a batch; one by one if part of it does not fit into quarantine, so that the rest is taken. As within one delivery,
 * what is busy holds back what comes behind it in its key. What did not fit does not: in quarantine it has no place in its key.
 */
export async function deliverWithin(
  batch: readonly Incoming[],
  deliver: (batch: readonly Incoming[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const whole = await deliver(batch).catch(ifFull)
  if (whole) return whole
  const outcomes: Outcome[] = []
  const heldBack = new Set<string>()
  for (const one of batch) {
    const { id, key } = namesOf(one)
    if (key !== undefined && heldBack.has(key)) {
      outcomes.push(busy(id))
      continue
    }
    // The batch was this one alone, and did not fit.
    const [outcome] = (batch.length > 1 && (await deliver([one]).catch(ifFull))) || []
    if (key !== undefined && outcome && isBusyForAny(outcome)) heldBack.add(key)
    outcomes.push(outcome ?? { ...busy(id), retryAt: new Date(Date.now() + RETRY_MS) })
  }
  return outcomes
}

function ifFull(error: unknown): undefined {
  if (!(error instanceof QuarantineFull)) throw error
}

/** A source of the user's may hand over anything: what cannot be looked at has neither. */
function namesOf(incoming: unknown): Pick<Incoming, 'id' | 'key'> {
  try {
    const { id, key } = incoming as Incoming
    return { id, key }
  } catch {
    return { id: undefined }
  }
}

/** One consumer may have failed, which is the status of the message then, while it is still to be stored for another. */
function isBusyForAny({ status, consumers }: Outcome): boolean {
  return status === 'busy' || consumers.some((one) => one.status === 'busy')
}

function busy(id: string | undefined): Outcome {
  return { id, ack: false, status: 'busy', consumers: [] }
}

/** Tells of a change. `used` is the share of its part with what was to be added; above 1 it was not. */
export function noteUse({ log }: Runtime, origin: Origin, used: number): void {
  if (used > 1 && !origin.full) {
    origin.full = true
    log.warn({ source: origin.name, ...limitsOf(origin) }, `${fullText(origin)}; retry or discard what is there`)
  } else if (used <= ROOMY && origin.full) {
    origin.full = false
    log.warn({ source: origin.name }, `the quarantine of source ${origin.name} has room again`)
  }
}

/** Of the sources whose part of the quarantine was full, those for which it still is, in words for people. */
export async function fullQuarantines(runtime: Runtime): Promise<string[]> {
  const full = runtime.origins.filter((origin) => origin.full)
  if (full.length === 0) return []
  const rows = await runtime.db.run(QUARANTINE_ACCOUNTS, full.map(({ name }) => name)) // prettier-ignore
  for (const origin of full) {
    const row = rows.find(({ via }) => via === origin.name)
    const { maxRows, maxBytes } = origin.quota!
    noteUse(runtime, origin, Math.max(Number(row?.messages) / maxRows, Number(row?.bytes) / maxBytes) || 0)
  }
  return full.filter((origin) => origin.full).map(fullText)
}

function fullText({ name }: Origin): string {
  return `the quarantine of source ${name} is full, and takes nothing more`
}

function limitsOf({ quota }: Origin): object {
  return { maxRows: quota!.maxRows, maxBytes: quota!.maxBytes }
}

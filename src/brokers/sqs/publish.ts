/**
 * One publish: events go out in requests of ten, a few at a time.
 *
 * A request holds one event of each key at most, and none goes behind one of its key that was refused: the entries of a
 * request succeed and fail on their own.
 */
import type { Message } from '../../message.js'
import { lanesOf } from '../lanes.js'
import { down, later, NO_PLACE_MS, untried, type Answer, type enoughOf } from '../send.js'
import type { Refusal } from '../sink.js'
import { MAX_ENTRIES, type OutgoingMessage, type Queue, type SqsError } from './client.js'
import { writeMessage, type WriteContext } from './event.js'

/** Of one request. SQS takes 1 MiB, where it once took 256 KiB, as others still do; larger events go alone. */
const REQUEST_BYTES = 262_144
/** Requests at a time. */
const REQUESTS = 4
/** A request was refused for something in it. Everything else is the fault of the queue, or of the way to it. */
const FAULTS_OF_MESSAGES = [
  ...['BatchRequestTooLong', 'InvalidMessageContents', 'InvalidAttributeValue'],
  ...['InvalidParameterValue', 'InvalidParameterValueException'],
]
/** SQS may call it the sender's fault that a key of KMS cannot be used; but that is not for good. */
const FAULTS_OF_OTHERS = /^kms|accessdenied|throttl/i

/** An event that is next of its key, and the positions of those behind it. */
interface Entry {
  readonly at: number
  readonly behind: number[]
  readonly outgoing: OutgoingMessage & { readonly bytes: number }
}

/** What ends a publish: `signal` requests that are on their way, `enough` says why no more are begun. */
interface Ends {
  readonly signal: AbortSignal
  readonly enough: ReturnType<typeof enoughOf>
}

/** Rejects if SQS has answered nothing at all. */
export async function publish(
  queue: Queue,
  batch: readonly Message[],
  context: WriteContext,
  { signal, enough }: Ends,
): Promise<Answer[]> {
  const answers = new Array<Answer>(batch.length).fill(undefined)
  const lanes = lanesOf(batch)
  let answered = false
  /** Why nothing more is sent. */
  let halted: unknown

  const fail = ([at, ...behind]: readonly number[], refusal: Refusal): void => {
    answers[at!] = refusal
    for (const other of behind) answers[other] = untried(refusal.error)
  }
  const nextEntry = (room: number): Entry | undefined => {
    for (let lane = lanes[0]; lane; lane = lanes[0]) {
      const [at, ...behind] = lane as [number, ...number[]]
      try {
        const outgoing = writeMessage(batch[at]!, context)
        if (outgoing.bytes > room) return undefined
        lanes.shift()
        return { at, behind, outgoing }
      } catch (error) {
        lanes.shift()
        fail([at, ...behind], { error, retry: false })
      }
    }
    return undefined
  }
  const nextRequest = (): Entry[] => {
    const entries: Entry[] = []
    let room = Infinity
    while (entries.length < MAX_ENTRIES) {
      const entry = nextEntry(room)
      if (!entry) break
      entries.push(entry)
      room = Math.min(room, REQUEST_BYTES) - entry.outgoing.bytes
    }
    return entries
  }
  const send = async (entries: readonly Entry[]): Promise<void> => {
    const outgoing = entries.map(({ outgoing: { bytes: _, ...message } }) => message)
    try {
      const refusals = new Map((await queue.send(outgoing, signal)).map(({ at, error }) => [at, error]))
      answered = true
      entries.forEach(({ at, behind }, position) => {
        const error = refusals.get(position)
        if (error) fail([at, ...behind], refusalOf(error))
        else if (behind.length > 0) lanes.push(behind)
      })
    } catch (error) {
      if (!FAULTS_OF_MESSAGES.includes((error as Error).name)) {
        halted ??= error
        for (const { at, behind } of entries) fail([at, ...behind], untried(error))
      } else if (entries.length > 1) {
        // One of them is to blame, and only it.
        for (const entry of entries) {
          const over = halted === undefined ? enough() : { error: halted }
          if (over) fail([entry.at, ...entry.behind], untried(over.error))
          else await send([entry])
        }
      } else {
        answered = true
        fail([entries[0]!.at, ...entries[0]!.behind], { error, retry: false })
      }
    }
  }
  const work = async (): Promise<void> => {
    while (halted === undefined && !enough()) {
      const entries = nextRequest()
      if (entries.length === 0) return
      await send(entries)
    }
  }
  await Promise.all(Array.from({ length: REQUESTS }, work))
  if (halted !== undefined && !answered) throw halted
  for (const lane of lanes) fail(lane, untried(halted ?? enough()?.error))
  return answers
}

/** Of one entry, where SQS took the request. */
function refusalOf(error: SqsError): Refusal {
  if (FAULTS_OF_OTHERS.test(error.code)) return later(error, NO_PLACE_MS)
  return error.senderFault ? { error, retry: false } : down(error)
}

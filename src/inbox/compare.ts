/**
 * Compare: is a message that came under a known id a copy of the one on record? By what its source chooses to compare; where
 * nothing was chosen, or no choice can be made, by all of its data.
 */
import { dataOf, decodeBody, fingerprint, type Unread } from '../body.js'
import type { Incoming } from '../message.js'

/** What of a message is compared; false for nothing. */
export type Choose = (message: Incoming) => unknown

/** A message that came, as far as it is compared. */
export interface Came extends Pick<Unread, 'body' | 'hash'> {
  readonly incoming: Incoming
  /** As its source compares. A message that has left the quarantine has the fingerprint alone. */
  readonly choose?: Choose | undefined
}

/** A message on record. */
export interface OnRecord {
  readonly body: string
  readonly key: string | null
  readonly envelope: string | null
}

/** By fingerprints of what its source chooses. Null: nothing is compared. Undefined: it cannot choose, or what it chooses is nested too deep. */
export function chosenHash(incoming: Incoming, choose: Choose): string | null | undefined {
  try {
    const chosen = choose(incoming)
    if (chosen === false) return null
    const text = JSON.stringify(chosen)
    return text === undefined ? null : fingerprint(JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

/** Do both say the same, though their fingerprints or their texts differ? Which door the one on record came through does not matter. */
export function saysTheSame(stored: OnRecord, came: Came): boolean {
  const { choose, hash } = came
  const chosen = choose && hash !== undefined ? chosenHash(asItCame(stored, came.incoming), choose) : undefined
  return chosen === undefined ? isSameData(stored.body, came.body) : chosen === null || chosen === hash
}

/** What was stored on the way into another encoding may be no JSON any more. */
function isSameData(stored: string, came: string): boolean {
  const read = decodeBody(stored)
  return !('problem' in read) && fingerprint(read.data) === fingerprint(JSON.parse(came))
}

/** In the form in which the other one came: a source knows how to read what it delivers. */
function asItCame({ body, key, envelope }: OnRecord, other: Incoming): Incoming {
  const { id, source, type } = other
  const rest = (envelope === null ? {} : JSON.parse(envelope)) as Pick<Incoming, 'subject' | 'time' | 'headers'>
  const same = { ...rest, id, type, ...(source !== undefined && { source }), ...(key !== null && { key }) }
  if (other.body === undefined) return { ...same, data: dataOf({ body, data: undefined }) }
  return { ...same, body: typeof other.body === 'string' ? body : Buffer.from(body) }
}

/** Reasons of quarantine: in the order in which a person should look at them, and in words. */
import type { Quarantine } from '../../../src/dashboard/answers/index.js'

interface Reason {
  readonly words: string
  /** The head of its list. */
  readonly many: string
  /** What to do about it. */
  readonly what: string
}

const REASONS: Readonly<Record<string, Reason>> = {
  conflict: { words: 'Known id, another body', many: 'Conflicts', what: 'The first body counts. Ask the producer for a new id, or discard the second body.' },
  'effect-unknown': { words: 'Nobody knows whether a call happened', many: 'Unknown effects', what: 'Look it up where the call went, then answer: the handler goes on from there.' },
  invalid: { words: 'The schema refuses it', many: 'Invalid', what: 'Mend the producer or the schema. Retry checks it again; discard gives it up.' },
  undecodable: { words: 'Not JSON in UTF-8', many: 'Undecodable', what: 'Mend the producer and have it send again under a new id; discard this one.' },
  unmapped: { words: 'map or type of its source failed', many: 'Unmapped', what: 'Mend map and deploy, hand it in again with box.receive, then discard this one.' },
  'too-large': { words: 'More bytes than maxBytes', many: 'Too large', what: 'Raise maxBytes and retry, or discard it.' },
  'too-old': { words: 'Older than the dedup horizon', many: 'Too old', what: 'It may have been handled already, before the horizon: check, then retry or discard it.' },
  'no-id': { words: 'Without a usable id', many: 'Without id', what: 'Nothing tells it from its copies. Mend the producer; discard this one.' },
  unrouted: { words: 'No consumer takes its type', many: 'Unrouted', what: 'Declare a consumer of its type, then retry; or discard it.' },
} // prettier-ignore

export const ORDER: readonly string[] = Object.keys(REASONS)

export function reasonWords(reason: string): Reason {
  return REASONS[reason] ?? { words: 'Kept as it came', many: reason, what: 'Look at it, then retry or discard it.' }
}

export interface ReasonCount {
  readonly reason: string
  readonly count: number
  readonly atLeast: boolean
}

/** All reasons there are, those that only a person can settle first; those without any stay, and are grey. */
export function reasonCounts({ reasons }: Quarantine): readonly ReasonCount[] {
  const names = [...ORDER, ...reasons.map(({ reason }) => reason).filter((name) => !ORDER.includes(name))]
  return [...new Set(names)].map((name) => {
    const rows = reasons.filter(({ reason }) => reason === name)
    return {
      reason: name,
      count: rows.reduce((sum, { count }) => sum + count, 0),
      atLeast: rows.some(({ atLeast }) => atLeast),
    }
  })
}

export function oldestOf({ reasons }: Quarantine): string | undefined {
  return reasons.flatMap(({ oldestAt }) => oldestAt ?? []).sort()[0]
}

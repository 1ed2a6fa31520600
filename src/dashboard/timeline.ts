/** The timeline of a message, oldest first. */
import type { Attempt, Effect, Fate, Item } from './answers/index.js'

export interface Known {
  readonly item: Item
  readonly sent: Date | undefined
  readonly history: readonly Attempt[]
  readonly effects: readonly Effect[]
  readonly dueAt: string | undefined
}

type Event = Fate['timeline'][number]

export function timelineOf({ item, sent, history, effects, dueAt }: Known): Event[] {
  const events: Event[] = [
    ...(sent ? [{ at: sent.toISOString(), what: 'sent' as const }] : []),
    { at: item.receivedAt, what: 'received' },
    ...history.map(({ at, attempt }): Event => ({ at, what: 'failed', attempt })),
    ...effects.flatMap(({ name: effect, calledAt, doneAt }): Event[] => [
      { at: calledAt, what: 'effect-called', effect },
      ...(doneAt === undefined ? [] : [{ at: doneAt, what: 'effect-done' as const, effect }]),
    ]),
    ...(item.handledAt === undefined ? [] : [{ at: item.handledAt, what: 'handled' as const }]),
    ...(dueAt === undefined ? [] : [{ at: dueAt, what: 'due' as const }]),
  ]
  return events.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
}

/** A state: silhouette, word and tint. */
import type { StateName } from '../api.js'
import { Silhouette, type Shape } from './silhouette.js'

const WORDS: Readonly<Record<StateName, string>> = {
  pending: 'Pending',
  processing: 'Processing',
  handled: 'Handled',
  dead: 'Dead',
  quarantined: 'Quarantined',
  discarded: 'Discarded',
}

export function StatePill({ state, large = false }: { state: StateName; large?: boolean }) {
  return <Pill tint={state} shape={state} word={WORDS[state]} large={large} />
}

export type Tint = StateName | 'warn'

/** The same for what is no state of a message: behind, blocked, paused. */
export function Pill({ tint, shape, word, large }: { tint: Tint; shape: Shape; word: string; large?: boolean }) {
  return (
    <span class={`pill s-${tint} ${large ? 'pill-lg' : ''}`}>
      <Silhouette of={shape} />
      {word}
    </span>
  )
}

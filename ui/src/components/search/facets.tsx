/** How many of a search are in which state; each is a way to narrow it down. */
import type { StateName, Tally } from '../../api.js'
import { about } from '../../logic/format.js'
import { Silhouette } from '../silhouette.js'

const STATES: readonly (readonly [StateName, string])[] = [
  ['pending', 'Pending'],
  ['processing', 'Processing'],
  ['dead', 'Dead'],
  ['quarantined', 'Quarantined'],
  ['handled', 'Handled'],
  ['discarded', 'Discarded'],
]

interface Props {
  tally: Tally | undefined
  chosen: readonly string[]
  onChoose(states: readonly string[]): void
}

export function Facets({ tally, chosen, onChoose }: Props) {
  const all = tally && totalOf(tally, [])
  return (
    <div class="facets" role="group" aria-label="State">
      <button type="button" class="facet" aria-pressed={chosen.length === 0} onClick={() => onChoose([])}>
        All {all !== undefined && <b>{all}</b>}
      </button>
      {STATES.map(([state, word]) => {
        const pressed = chosen.includes(state)
        const found = tally?.states[state]
        return (
          <button
            type="button"
            class="facet"
            aria-pressed={pressed}
            key={state}
            onClick={() => onChoose(pressed ? chosen.filter((one) => one !== state) : [state])}
          >
            <span class={`with-st f-${state}`}>
              <Silhouette of={state} />
            </span>
            {word} {tally && <b class={found?.count ? '' : 'nil'}>{about(found?.count ?? 0, found)}</b>}
          </button>
        )
      })}
    </div>
  )
}

/** Of the states that are chosen, or of all. */
export function totalOf({ states }: Tally, chosen: readonly string[]): string {
  const counted = Object.entries(states).filter(([state]) => chosen.length === 0 || chosen.includes(state))
  const sum = counted.reduce((total, [, { count }]) => total + count, 0)
  const atLeast = counted.some(([, one]) => one.atLeast)
  const estimated = counted.some(([, one]) => one.estimated)
  return about(sum, { atLeast, estimated })
}

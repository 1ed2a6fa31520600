/** How many match, how many are selected, and what can be done with either. */
import type { Item, Tally } from '../../api.js'
import { readValues } from '../../logic/query.js'
import { queriesFor } from '../../logic/selection.js'
import { visible } from '../../logic/visible.js'
import { box } from '../../router.js'
import { openBulk } from '../bulk/open.js'
import { Button } from '../button.js'
import { totalOf } from './facets.js'

interface Props {
  q: string
  tally: Tally | undefined
  selected: readonly Item[]
  onClear(): void
}

export type Verb = 'retry' | 'discard'

/** More groups than these would be a wall of buttons. */
const MOST_GROUPS = 4

/** With a selection its first group, else all that match. */
export function actOn(verb: Verb, q: string, selected: readonly Item[]): void {
  const [first] = queriesFor(selected, isOutbox(q))
  openBulk({ verb, box: box.value, q: first?.q ?? q })
}

export function Acting({ q, tally, selected, onClear }: Props) {
  if (selected.length > 0) {
    const groups = queriesFor(selected, isOutbox(q))
    const isOne = groups.length === 1
    return (
      <div class="matching">
        <span>
          <b>{selected.length}</b> selected{' '}
          {groups.length > 1 && <span class="faint">· of several consumers or states: one at a time</span>}
        </span>
        <div class="end">
          {groups.slice(0, MOST_GROUPS).map(({ q: own, count, consumer }) => (
            <span class="btns" key={own}>
              <Button
                small
                icon="retry"
                needs="retry"
                onClick={() => openBulk({ verb: 'retry', box: box.value, q: own })}
              >
                {isOne ? `Retry ${count}…` : `Retry ${count} of ${visible(consumer || 'the door')}…`}
              </Button>
              <Button small needs="discard" onClick={() => openBulk({ verb: 'discard', box: box.value, q: own })}>
                {`Discard ${count}…`}
              </Button>
            </span>
          ))}
          <Button small kind="bare" onClick={onClear}>
            Clear
          </Button>
        </div>
      </div>
    )
  }
  const total = tally && totalOf(tally, readValues(q, 'state'))
  return (
    <div class="matching">
      <span aria-live="off">
        {total === undefined ? (
          <span class="mut">Counting…</span>
        ) : (
          <>
            <b>{total}</b> match{' '}
            {/[≈+]/.test(total) && <span class="faint">· counted exactly before anything is changed</span>}
          </>
        )}
      </span>
      <div class="end">
        <Button small icon="retry" needs="retry" onClick={() => actOn('retry', q, [])}>
          Retry all that match…
        </Button>
        <Button small needs="discard" onClick={() => actOn('discard', q, [])}>
          Discard…
        </Button>
      </div>
    </div>
  )
}

export function isOutbox(q: string): boolean {
  return readValues(q, 'box').includes('outbox')
}

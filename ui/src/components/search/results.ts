/**
 * The results of a search: a page at a time by cursors. What is shown stays where it is; what has arrived since is counted, and
 * comes when it is asked for.
 */
import { useEffect } from 'preact/hooks'
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { api, zone, type Item, type Messages } from '../../api.js'
import { firstFound } from '../../logic/further.js'
import { newSince, refreshed } from '../../logic/selection.js'
import { useLively } from '../../lively.js'
import { useLoad, type Load } from '../../load.js'
import { box } from '../../router.js'

const LOOK_MS = 5_000
const LIMIT = 50

export interface Results {
  readonly load: Load<Messages>
  readonly items: readonly Item[]
  /** How many are newer than what is shown; only on the first page. */
  readonly fresh: ReadonlySignal<number>
  readonly hasNewer: boolean
  readonly hasOlder: boolean
  newer(): void
  older(): void
  /** From the newest on. */
  restart(): void
}

export function useResults(q: string): Results {
  const cursors = useSignal<readonly string[]>([])
  const fresh = useSignal(0)
  const times = useSignal(0)
  const of = box.value
  const cursor = cursors.value.at(-1)
  const load = useLoad<Messages>(`${of}\n${q}\n${cursor ?? ''}\n${times.value}`, (signal) =>
    collect(of, q, { cursor, signal }),
  )
  useEffect(() => {
    cursors.value = []
    fresh.value = 0
  }, [of, q])
  useLively(LOOK_MS, () => {
    const shown = load.value.value
    if (cursor !== undefined || !shown || load.busy.value || load.failure.value) return
    void look(of, q).then((newest) => {
      if (!newest || load.value.value !== shown) return
      fresh.value = newSince(shown.items, newest.items)
      load.value.value = { ...shown, items: refreshed(shown.items, newest.items) }
    })
  })
  return {
    load,
    items: load.value.value?.items ?? [],
    fresh,
    hasNewer: cursors.value.length > 0,
    hasOlder: load.value.value?.cursor !== undefined,
    newer: () => (cursors.value = cursors.value.slice(0, -1)),
    older() {
      const next = load.value.value?.cursor
      if (next !== undefined) cursors.value = [...cursors.value, next]
    },
    restart() {
      fresh.value = 0
      cursors.value = []
      times.value += 1
    },
  }
}

function collect(
  of: string,
  q: string,
  { cursor, signal }: { cursor: string | undefined; signal: AbortSignal },
): Promise<Messages> {
  const part = (from: string | undefined): Promise<Messages> =>
    api.messages({ box: of, q, zone: zone(), limit: LIMIT, cursor: from }, { signal })
  return firstFound(part, cursor, () => performance.now())
}

/** Quietly: what fails here is told by the next search. */
async function look(of: string, q: string): Promise<Messages | undefined> {
  try {
    return await api.messages({ box: of, q, zone: zone(), limit: LIMIT })
  } catch {
    return undefined
  }
}

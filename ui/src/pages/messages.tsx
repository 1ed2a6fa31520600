/** Messages: the search bar, how many there are in each state, and the newest of them. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { api, DashboardError, zone } from '../api.js'
import { Button } from '../components/button.js'
import { Kbd } from '../components/kbd.js'
import { Loaded } from '../components/loaded.js'
import { PageHead } from '../components/page-head.js'
import { Acting, actOn, isOutbox } from '../components/search/acting.js'
import { Facets } from '../components/search/facets.js'
import { MessageTable } from '../components/search/message-table.js'
import { NoMatch } from '../components/search/no-match.js'
import { useResults } from '../components/search/results.js'
import { SearchBar } from '../components/search/search-bar.js'
import { Segmented } from '../components/segmented.js'
import { SkeletonRows } from '../components/skeleton.js'
import { useShortcuts } from '../keyboard.js'
import { jobs, overview } from '../live.js'
import { about, count, plural } from '../logic/format.js'
import { readValues, withValues } from '../logic/query.js'
import { rowKey } from '../logic/selection.js'
import { seenAtLeast } from '../logic/tally.js'
import { useLively } from '../lively.js'
import { useLoad } from '../load.js'
import { box, query, setQuery } from '../router.js'
import { refusal } from '../session.js'
import { toast } from '../toasts.js'

const TALLY_MS = 10_000

export function MessagesPage() {
  const q = query.value['q'] ?? ''
  const states = readValues(q, 'state')
  const rest = withValues(q, 'state', [])
  const vocabulary = useLoad(box.value, (signal) => api.vocabulary({ box: box.value }, { signal })).value.value
  const results = useResults(q)
  const { load, items, fresh } = results
  const isRefused =
    load.failure.value?.error instanceof DashboardError && load.failure.value.error.code === 'QUERY_INVALID'
  const changed = useEnded()
  const tally = useLoad(`${box.value}\n${rest}\n${changed}`, (signal) =>
    api.tally({ box: box.value, q: rest, zone: zone() }, { signal }),
  )
  useLively(TALLY_MS, tally.reload)
  const counted = tally.failure.value ? undefined : tally.value.value
  const counts = counted && seenAtLeast(counted, items)
  const selected = useSignal<ReadonlySet<string>>(new Set())
  useEffect(() => {
    selected.value = new Set()
  }, [q])
  useEffect(() => {
    if (changed > 0) results.restart()
  }, [changed])
  const chosen = items.filter((item) => selected.value.has(rowKey(item)))
  const onSearch = (to: string): void => setQuery({ q: to })
  const act = (verb: 'retry' | 'discard') => () => {
    const why = refusal(verb)
    if (why === undefined) actOn(verb, q, chosen)
    else toast({ text: why })
  }
  useShortcuts([
    { keys: 'r', does: 'Retry…', run: act('retry') },
    { keys: 'Shift+d', does: 'Discard…', run: act('discard') },
  ])
  return (
    <>
      <PageHead
        title="Messages"
        end={
          <Segmented
            label="Box"
            value={isOutbox(q) ? 'outbox' : 'inbox'}
            choices={[
              { value: 'inbox', text: 'Inbox' },
              { value: 'outbox', text: 'Outbox' },
            ]}
            onChoose={(to) => onSearch(withValues(q, 'box', to === 'outbox' ? ['outbox'] : []))}
          />
        }
      />
      <SearchBar q={q} vocabulary={vocabulary} countOf={countOf} onSearch={onSearch} />
      <Facets tally={counts} chosen={states} onChoose={(to) => onSearch(withValues(q, 'state', to))} />
      <section class="panel" aria-label="Results">
        {!isRefused && <Acting q={q} tally={counts} selected={chosen} onClear={() => (selected.value = new Set())} />}
        {fresh.value > 0 && (
          <div class="fresh">
            <Button small onClick={results.restart}>
              {`${about(fresh.value, { atLeast: fresh.value >= 50 })} new`}
            </Button>
          </div>
        )}
        <Loaded of={load} waiting={<SkeletonRows rows={12} />}>
          {() =>
            items.length === 0 ? (
              <NoMatch q={q} onSearch={onSearch} onFurther={results.hasOlder ? results.older : undefined} />
            ) : (
              <MessageTable
                items={items}
                selected={selected.value}
                onSelect={(keys, on) => {
                  const others = [...selected.value].filter((key) => !keys.includes(key))
                  selected.value = new Set(on ? [...others, ...keys] : others)
                }}
              />
            )
          }
        </Loaded>
        {items.length > 0 && (
          <div class="pager">
            <span class="mut">{`${plural(items.length, 'row')}, newest first.${results.hasOlder ? ' There are more.' : ''}`}</span>
            <span class="end">
              <Button small onClick={results.newer} blocked={results.hasNewer ? undefined : 'These are the newest.'}>
                Newer
              </Button>
              <Button small onClick={results.older} blocked={results.hasOlder ? undefined : 'These are the oldest.'}>
                Older
              </Button>
            </span>
          </div>
        )}
      </section>
      <Foot />
    </>
  )
}

/** Of consumers and states, as far as the overview tells them. */
function countOf(qualifier: string, value: string): string | undefined {
  const consumers = overview.value?.consumers
  if (!consumers) return undefined
  if (qualifier === 'state') {
    const sum = consumers.reduce((total, one) => total + (one[value as 'dead'] ?? 0), 0)
    return about(sum, { estimated: consumers.some(({ estimated }) => estimated) })
  }
  if (qualifier !== 'consumer') return undefined
  const found = consumers.find(({ name }) => name === value)
  return found && `${count(found.pending + found.processing)} open`
}

/** Counts the changes of many messages that ended while the page was open: the list is another one then. */
function useEnded(): number {
  const ended = jobs.value.filter(({ state }) => state !== 'running').length
  const first = useSignal(ended)
  return Math.max(0, ended - first.value)
}

function Foot() {
  const keys = [['/', 'search'], ['j k', 'move'], ['Enter', 'open'], ['x', 'select'], ['r', 'retry'], ['?', 'all shortcuts']] as const // prettier-ignore
  return (
    <p class="foot">
      {keys.map(([key, does]) => (
        <span key={key}>
          <Kbd keys={key} /> {does}
        </span>
      ))}
    </p>
  )
}

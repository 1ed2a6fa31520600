/** What is in quarantine for one reason, newest first, fifty at a time. */
import { useSignal } from '@preact/signals'
import { api, zone, type Item } from '../../api.js'
import { inRow, useShortcuts } from '../../keyboard.js'
import { useLoad } from '../../load.js'
import { about } from '../../logic/format.js'
import { reasonWords, type ReasonCount } from '../../logic/quarantine-words.js'
import { visible } from '../../logic/visible.js'
import { box, href } from '../../router.js'
import { toastError } from '../../toasts.js'
import { Button } from '../button.js'
import { openBulk } from '../bulk/open.js'
import { Loaded } from '../loaded.js'
import { Panel } from '../panel.js'
import { Shown } from '../shown.js'
import { SkeletonRows } from '../skeleton.js'
import { Time } from '../time.js'
import { useDifferences, type Differences } from './differences.js'

const PAGE = 50
/** A retry would meet the same. */
const NEVER_RETRIED = new Set(['conflict', 'unmapped', 'no-id', 'effect-unknown'])

interface Props {
  of: ReasonCount
  /** Changes when the reasons were read again, and the list with them. */
  read: unknown
  /** The row that is open below. */
  current: string | undefined
  /** The newest, once it is known. */
  onFirst(n: string | undefined): void
}

export function QuarantineList({ of: { reason, count, atLeast }, read, current, onFirst }: Props) {
  const name = box.value
  const more = useSignal<readonly Item[]>([])
  const next = useSignal<string | undefined>(undefined)
  const q = `state:quarantined reason:${reason}`
  const version = useVersion(read)
  const page = (cursor?: string, signal?: AbortSignal) =>
    api.messages({ box: name, q, zone: zone(), limit: PAGE, cursor }, { signal })
  const load = useLoad(`quarantined ${name} ${q} ${version}`, async (signal) => {
    const first = await page(undefined, signal)
    more.value = []
    next.value = first.cursor
    onFirst(first.items.map((item) => placeOf(item, reason))[0])
    return first
  })
  const older = async (): Promise<void> => {
    try {
      const answer = await page(next.value)
      more.value = [...more.value, ...answer.items]
      next.value = answer.cursor
    } catch (error) {
      toastError('Older ones could not be read', error)
    }
  }
  const retry = (): void => openBulk({ verb: 'retry', box: name, q })
  const discard = (): void => openBulk({ verb: 'discard', box: name, q })
  useShortcuts([
    { keys: 'Enter', does: 'Open row', run: () => inRow<HTMLAnchorElement>('.row-link')?.click() },
    ...(NEVER_RETRIED.has(reason) ? [] : [{ keys: 'r', does: 'Retry…', run: () => document.querySelector<HTMLButtonElement>('.act-retry')?.click() }]),
    { keys: 'Shift+d', does: 'Discard…', run: () => document.querySelector<HTMLButtonElement>('.act-discard')?.click() },
  ]) // prettier-ignore
  const { many, what } = reasonWords(reason)
  const amount = about(count, { atLeast })
  return (
    <Panel
      title={many}
      sub={amount}
      end={
        count > 0 && (
          <>
            {!NEVER_RETRIED.has(reason) && (
              <Button small class="act-retry" needs="retry" onClick={retry}>
                Retry {amount}…
              </Button>
            )}
            <Button small class="act-discard" needs="discard" onClick={discard}>
              Discard {amount}…
            </Button>
          </>
        )
      }
    >
      {count === 0 ? (
        <p class="panel-body mut">None right now.</p>
      ) : (
        <Loaded of={load} waiting={<SkeletonRows rows={Math.min(count, 6)} />}>
          {({ items }) => {
            const List = reason === 'conflict' ? ConflictTable : Table
            return <List items={[...items, ...more.value]} reason={reason} current={current} />
          }}
        </Loaded>
      )}
      {next.value !== undefined && count > 0 && (
        <div class="pager">
          <span class="mut">Newest first</span>
          <span class="end">
            <Button small onClick={() => void older()}>
              Show older
            </Button>
          </span>
        </div>
      )}
      <div class="note">{what}</div>
    </Panel>
  )
}

/** Its number in quarantine; of what was stored before it was parked, who it is for and what it is. */
export function placeOf({ n, consumer, source, id }: Item, reason: string): string | undefined {
  return n ?? (reason === 'effect-unknown' ? [consumer, source, id].join('\n') : undefined)
}

/** Counts up when something is another than before. */
function useVersion(of: unknown): number {
  const seen = useSignal<{ of: unknown; version: number }>({ of, version: 0 })
  if (seen.peek().of !== of) seen.value = { of, version: seen.peek().version + 1 }
  return seen.peek().version
}

interface TableProps {
  items: readonly Item[]
  reason: string
  current: string | undefined
  /** How much differs, of conflicts. */
  differences?: Differences | undefined
}

function ConflictTable(props: TableProps) {
  return <Table {...props} differences={useDifferences(box.value, props.items)} />
}

function Table({ items, reason, current, differences }: TableProps) {
  const saysWhy = reason !== 'conflict' && reason !== 'effect-unknown'
  return (
    <div class="scroll">
      <table class="t" role="table">
        <thead>
          <tr>
            <th scope="col">Id</th>
            <th scope="col">Type</th>
            <th scope="col">Source</th>
            <th scope="col">Consumer</th>
            {saysWhy && <th scope="col">Why</th>}
            {differences && <th scope="col">Difference</th>}
            <th scope="col" class="num">
              Arrived
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <Row
              key={item.n ?? `${item.consumer} ${item.source} ${item.id}`}
              {...{ item, reason, saysWhy, current, differences }}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps {
  item: Item
  reason: string
  saysWhy: boolean
  current: string | undefined
  differences: Differences | undefined
}

function Row({ item, reason, saysWhy, current, differences }: RowProps) {
  const { id, source, consumer, type, receivedAt, error, detail } = item
  const why = detail ?? error?.message ?? error?.name ?? ''
  const place = placeOf(item, reason)
  // What has no place here has a page of its own.
  const to = place === undefined ? href('message', { id, source, consumer }) : href('quarantine', { reason, n: place })
  return (
    <tr class={place !== undefined && place === current ? 'is-current' : ''} data-row-of={id}>
      <td class="id c-full">
        <a class="row-link" data-id={id} href={to}>
          {id === '' ? <span class="faint">without</span> : <Shown text={id} />}
        </a>
      </td>
      <td class="c-half" data-l="Type">
        <Shown text={type} />
      </td>
      <td class="c-half" data-l="Source">
        {source === '' ? <span class="nil">–</span> : <Shown text={source} />}
      </td>
      <td class="c-half" data-l="Consumer">
        {consumer === '' ? 'all' : consumer}
      </td>
      {saysWhy && (
        <td class="err c-full" title={visible(why)}>
          <Shown text={why} />
        </td>
      )}
      {differences && (
        <td class="c-half nowrap" data-l="Difference">
          {differences.get(item.n ?? '') ?? <span class="nil">…</span>}
        </td>
      )}
      <td class="num mut c-half" data-l="Arrived">
        <Time at={receivedAt} />
      </td>
    </tr>
  )
}

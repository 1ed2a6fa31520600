/** Messages as rows: each is a link, and a card on phones. */
import type { Item } from '../../api.js'
import { rowKey } from '../../logic/selection.js'
import { shortened } from '../../logic/format.js'
import { visible } from '../../logic/visible.js'
import { href, query } from '../../router.js'
import { Shown } from '../shown.js'
import { StatePill } from '../state-pill.js'
import { Time } from '../time.js'
import { isOutbox } from './acting.js'

interface Props {
  items: readonly Item[]
  selected: ReadonlySet<string>
  onSelect(keys: readonly string[], on: boolean): void
}

export function MessageTable({ items, selected, onSelect }: Props) {
  const keys = items.map(rowKey)
  const all = keys.length > 0 && keys.every((key) => selected.has(key))
  return (
    <div class="scroll">
      <table class="t fixed msgs" role="table">
        <caption class="vh">Messages, newest first</caption>
        <colgroup>
          <col class="w-cb" />
          <col class="w-st" />
          <col class="w-ty" />
          <col class="w-id" />
          <col class="w-co" />
          <col class="w-ke md-hide" />
          <col class="w-at lg-hide" />
          <col class="w-re" />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">
              <input
                class="check"
                type="checkbox"
                aria-label="Select the rows of this page"
                checked={all}
                onChange={(event) => onSelect(keys, event.currentTarget.checked)}
              />
            </th>
            <th scope="col">State</th>
            <th scope="col">Type</th>
            <th scope="col">Id</th>
            <th scope="col">Consumer</th>
            <th scope="col" class="md-hide">
              Key
            </th>
            <th scope="col" class="num lg-hide">
              Attempts
            </th>
            <th scope="col" class="num" aria-sort="descending">
              {isOutbox(query.value['q'] ?? '') ? 'Sent' : 'Received'}
            </th>
            <th scope="col">Error or reason</th>
          </tr>
        </thead>
        <tbody>
          {items.map((item, n) => (
            <Row
              item={item}
              isSelected={selected.has(keys[n]!)}
              onSelect={(on) => onSelect([keys[n]!], on)}
              key={keys[n]}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row({ item, isSelected, onSelect }: { item: Item; isSelected: boolean; onSelect(on: boolean): void }) {
  const { id, source, consumer, type, key, state, attempts, receivedAt, n } = item
  const words = wordsFor(item)
  return (
    <tr class={isSelected ? 'is-current' : ''}>
      <td class="c-hide">
        <input
          class="check"
          type="checkbox"
          aria-label={`Select ${visible(id)}`}
          checked={isSelected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />
      </td>
      <td class="c-half o1">
        <StatePill state={state} />
      </td>
      <td class="c-full o3" title={visible(type)}>
        <a class="row-link" href={id === '' ? href('quarantine', { n }) : href('message', { id, source, consumer, n })}>
          <b>
            <Shown text={type} />
          </b>
        </a>
      </td>
      <td class="id c-half o3" title={visible(id)} data-id={id}>
        {id === '' ? <span class="nil">none</span> : <Shown text={shortened(id)} />}
      </td>
      <td class="c-half c-end o3" title={visible(consumer)}>
        {consumer === '' ? <span class="mut">at the door</span> : <Shown text={consumer} />}
      </td>
      <td class="id c-hide md-hide" title={visible(key ?? '')}>
        {key === undefined ? <span class="nil">–</span> : <Shown text={key} />}
      </td>
      <td class="num c-hide lg-hide">
        <span class={state === 'dead' ? 'f-dead' : attempts === 0 ? 'nil' : ''}>{attempts === 0 ? '–' : attempts}</span>
      </td>
      <td class="num c-half c-end o2 mut">
        <Time at={receivedAt} />
      </td>
      <td class={`c-full two mut ${words === '' ? 'c-hide' : ''}`} title={visible(words)}>
        {words === '' ? <span class="nil">–</span> : <Shown text={words} />}
      </td>
    </tr>
  )
}

function wordsFor({ error, reason, detail }: Item): string {
  const said = error ? (error.message === undefined ? error.name : `${error.name}: ${error.message}`) : detail
  return [reason, said].filter((one) => one !== undefined && one !== '').join(': ')
}

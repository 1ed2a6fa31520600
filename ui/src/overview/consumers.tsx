/** A row for each consumer. Every count leads to its search, the row to what waits, the button pauses it. */
import { useRef } from 'preact/hooks'
import { quote } from '../../../src/dashboard/quote.js'
import type { ConsumerStatus } from '../api.js'
import { Button } from '../components/button.js'
import { CountLink } from '../components/count-link.js'
import { Panel } from '../components/panel.js'
import { Silhouette } from '../components/silhouette.js'
import { Sparkline } from '../components/sparkline.js'
import { Speed } from '../components/speed.js'
import { Tag } from '../components/tag.js'
import { For } from '../components/time.js'
import { about, duration, percent } from '../logic/format.js'
import { sparkOf } from '../logic/lines.js'
import { BEHIND_MS, consumersOf, isBehind, worstFirst } from '../logic/verdict.js'
import { href, search } from '../router.js'
import type { Figures } from './figures.js'
import { askToSwitch } from './pause.js'

export function Consumers({ figures }: { figures: Figures }) {
  const { overview } = figures
  const table = useRef<HTMLTableElement>(null)
  const consumers = useCalmOrder(worstFirst(consumersOf(overview)), table)
  const door = overview.consumers.find(({ name }) => name === '')
  const estimated = overview.consumers.some((one) => one.estimated)
  return (
    <Panel title="Consumers" sub={`${consumers.length}, worst first`} {...(estimated && { end: '≈ estimated' })}>
      <div class="scroll">
        <table class="t" role="table" ref={table}>
          <thead>
            <tr>
              <th scope="col">Consumer</th>
              <th scope="col" class="num">
                Lag
              </th>
              {['In /s', 'Out /s', 'Pending', 'Processing', 'Dead', 'Quarantined'].map((head) => (
                <th scope="col" class="num" key={head}>
                  {head}
                </th>
              ))}
              <th scope="col" class="num md-hide">
                Handled
              </th>
              <th scope="col" class="num md-hide">
                Duplicates
              </th>
              <th scope="col">
                <span class="vh">Pause or resume</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {consumers.map((one) => (
              <Row key={one.name} one={one} figures={figures} />
            ))}
            {door && door.quarantined > 0 && <Door n={door.quarantined} />}
          </tbody>
        </table>
      </div>
    </Panel>
  )
}

function Row({ one, figures }: { one: ConsumerStatus; figures: Figures }) {
  const { name, rates, paused } = one
  const to = (state: string): string => search(`consumer:${quote(name)} state:${state}`)
  const counts = (state: 'pending' | 'processing' | 'dead' | 'quarantined', marked = false) => (
    <CountLink
      n={one[state]}
      href={to(state)}
      label={`${state}, ${name}`}
      estimated={one.estimated === true && state === 'pending'}
      {...(marked && { state })}
    />
  )
  return (
    <tr>
      <th scope="row" class="c-3 o1">
        <span class="name">
          <a class="row-link clip" title={name} href={search(`consumer:${quote(name)}`)}>
            {name}
          </a>
          <Tags one={one} complete={figures.overview.blocked.complete} />
        </span>
      </th>
      <td class="num c-half o3" data-l="Lag">
        <Lag one={one} figures={figures} />
      </td>
      <td class="num" data-l="In /s">
        <Speed of={rates?.inPerSecond} />
      </td>
      <td class="num" data-l="Out /s">
        <Speed of={rates?.outPerSecond} />
      </td>
      <td class="num" data-l="Pending">
        {counts('pending')}
      </td>
      <td class="num" data-l="Processing">
        {counts('processing')}
      </td>
      <td class="num" data-l="Dead">
        {counts('dead', true)}
      </td>
      <td class="num" data-l="Quarantined">
        {counts('quarantined', true)}
      </td>
      <td class="num c-hide md-hide" data-l="Handled">
        <span class={one.handled === 0 ? 'nil' : ''}>{about(one.handled, { estimated: one.estimated === true })}</span>
      </td>
      <td class="num c-hide md-hide" data-l="Duplicates">
        {rates && rates.duplicatesPerSecond > 0 ? (
          percent(rates.duplicatesPerSecond, rates.duplicatesPerSecond + rates.inPerSecond)
        ) : (
          <span class="nil">{rates ? '0 %' : '–'}</span>
        )}
      </td>
      <td class="num c-end o2">
        <Button
          small
          kind="bare"
          icon={paused ? 'play' : 'pause'}
          label={`${paused ? 'Resume' : 'Pause'} ${name}`}
          needs="pause"
          onClick={() => void askToSwitch(name, paused ? 'resume' : 'pause')}
        />
      </td>
    </tr>
  )
}

function Tags({ one, complete }: { one: ConsumerStatus; complete: boolean }) {
  const { pausedAt, blockedKeys = 0 } = one
  return (
    <>
      {isBehind(one) && (
        <Tag tone="dead" shape="behind">
          behind
        </Tag>
      )}
      {one.paused && (
        <Tag tone="warn" shape="paused">
          paused
          {pausedAt !== undefined && <For at={pausedAt} />}
        </Tag>
      )}
      {one.mode === 'inline' && <Tag>inline</Tag>}
      {one.mode === 'direct' && <Tag>direct</Tag>}
      {one.order === 'key' && <Tag>order: key</Tag>}
      {blockedKeys > 0 && (
        <a class="tag tag-dead" href={href('keys', { consumer: one.name })}>
          <Silhouette of="dead" />
          {about(blockedKeys, { atLeast: !complete })} {blockedKeys === 1 ? 'key' : 'keys'} blocked
        </a>
      )}
    </>
  )
}

function Lag({ one, figures }: { one: ConsumerStatus; figures: Figures }) {
  const { name, lagMs, paused, mode, limitMs = BEHIND_MS } = one
  if ((mode === 'inline' || mode === 'direct') && lagMs === 0) {
    return (
      <span class="nil" title="Runs on arrival: nothing waits">
        on arrival
      </span>
    )
  }
  const bad = !paused && lagMs > limitMs
  return (
    <span class="lag">
      <Sparkline values={sparkOf(name, figures)} bad={bad} />
      <span class={`lag-v ${bad ? 'f-dead' : paused && lagMs > 0 ? 'f-warn' : lagMs === 0 ? 'nil' : ''}`}>
        {duration(lagMs)}
      </span>
    </span>
  )
}

function Door({ n }: { n: number }) {
  const none = (cells: number, more = '') =>
    Array.from({ length: cells }, (_, at) => (
      <td class={`num c-hide ${more}`} key={`${more}${at}`}>
        <span class="nil">–</span>
      </td>
    ))
  return (
    <tr>
      <th scope="row" class="c-full o1">
        <span class="name">
          <a class="row-link" href={href('quarantine')}>
            Refused at the door
          </a>
          <Tag>no consumer</Tag>
        </span>
      </th>
      {none(6)}
      <td class="num c-half" data-l="Quarantined">
        <CountLink n={n} href={href('quarantine')} label="quarantined, refused at the door" state="quarantined" />
      </td>
      {none(2, 'md-hide')}
      <td class="c-hide" />
    </tr>
  )
}

/** Rows do not move under the pointer, nor under the focus: they keep their places until it is gone. */
function useCalmOrder(
  sorted: readonly ConsumerStatus[],
  table: { readonly current: HTMLElement | null },
): readonly ConsumerStatus[] {
  const order = useRef<readonly string[]>([])
  const looked = table.current?.matches(':hover, :focus-within') ?? false
  const names = sorted.map(({ name }) => name)
  const same = names.length === order.current.length && names.every((name) => order.current.includes(name))
  if (!looked || !same) order.current = names
  return order.current.map((name) => sorted.find((one) => one.name === name)!)
}

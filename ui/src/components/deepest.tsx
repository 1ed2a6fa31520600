/** The keys that move and have the most waiting. */
import type { DeepKey, Keys } from '../api.js'
import { overview } from '../live.js'
import { about, span } from '../logic/format.js'
import { quote } from '../logic/query.js'
import { visible } from '../logic/visible.js'
import { inUtc } from '../logic/when.js'
import { now } from '../now.js'
import { search } from '../router.js'
import { Lane } from './lane.js'
import { Panel } from './panel.js'
import { Shown } from './shown.js'
import { Tag } from './tag.js'

export function Deepest({ of: { deepest, sampled } }: { of: Keys }) {
  if (deepest.length === 0) return null
  const found = sampled ? ' \u00b7 found in a sample, each counted' : ''
  return (
    <Panel title="Deepest lanes" sub={`they move; one message of a key runs at a time${found}`}>
      <div class="scroll">
        <table class="t t-keys" role="table">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Consumer</th>
              <th scope="col" class="num" aria-sort="descending">
                Waiting
              </th>
              <th scope="col" class="lg-hide">
                Lane
              </th>
              <th scope="col" class="num">
                Oldest
              </th>
            </tr>
          </thead>
          <tbody>
            {deepest.map((one) => (
              <Row key={`${one.consumer} ${one.key} ${one.oldestAt}`} of={one} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  )
}

function Row({ of: { consumer, key, waiting, atLeast, running, oldestAt } }: { of: DeepKey }) {
  const paused = overview.value?.consumers.find(({ name }) => name === consumer)?.paused === true
  return (
    <tr>
      <td class="id c-full o1" title={visible(key)}>
        <a class="row-link" href={search(`consumer:${quote(consumer)} key:${quote(key)} state:pending,processing`)}>
          <Shown text={key} />
        </a>
      </td>
      <td class="of c-half" data-l="Consumer">
        <span class="name">
          <Shown text={consumer} />
          {paused && (
            <Tag tone="warn" shape="paused">
              paused
            </Tag>
          )}
        </span>
      </td>
      <td class="num c-half" data-l="Waiting">
        {about(waiting, { atLeast })}
      </td>
      <td class="lane-c c-full o8 lg-hide">
        <Lane waiting={waiting} atLeast={atLeast} state={running ? 'processing' : 'pending'} />
      </td>
      <td class="num nowrap c-half" data-l="Oldest">
        <span title={inUtc(oldestAt)}>{span(Math.max(0, now.value - Date.parse(oldestAt)))}</span>
      </td>
    </tr>
  )
}

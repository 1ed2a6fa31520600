/** What happened to a message, newest first. */
import type { Fate } from '../../api.js'
import { momentsOf } from '../../logic/timeline.js'
import { Panel } from '../panel.js'
import { Shown } from '../shown.js'
import { Silhouette } from '../silhouette.js'
import { Time } from '../time.js'

export function Timeline({ fate }: { fate: Fate }) {
  return (
    <Panel title="Timeline" sub="newest first">
      <ol class="time">
        {momentsOf(fate).map(({ mark, title, small, at }, n) => (
          <li key={n}>
            <span class={mark === 'event' ? 'f-up' : `f-${mark}`}>
              <Silhouette of={mark === 'event' ? 'up' : mark} />
            </span>
            <span>
              <Shown text={title} />
              {small !== undefined && (
                <small>
                  <Shown text={small} />
                </small>
              )}
            </span>
            <Time at={at} />
          </li>
        ))}
      </ol>
    </Panel>
  )
}

/** A group of failures: what they died of, when, how many, and what to do about them. */
import type { FailureGroup } from '../api.js'
import { groupName, partsOfMessage } from '../logic/failure-words.js'
import { about, count } from '../logic/format.js'
import { visible } from '../logic/visible.js'
import { href, search } from '../router.js'
import { Button } from './button.js'
import { Silhouette } from './silhouette.js'
import { Bars } from './sparkline.js'
import { Ago, Time } from './time.js'

interface Props {
  group: FailureGroup
  /** Only the largest has a filled button. */
  isLargest: boolean
  /** There are more than were looked at. */
  atLeast: boolean
  onAct(verb: 'retry' | 'discard'): void
}

export function FailureRow({ group, isLargest, atLeast, onAct }: Props) {
  const { message, fingerprint, consumer, types, hours, firstAt, lastAt, query, blocks } = group
  const lately = hours.reduce((sum, n) => sum + n, 0)
  return (
    <article class="group" data-row-of={fingerprint}>
      <div>
        <h2>
          <a href={search(query)}>{visible(groupName(group))}</a>
        </h2>
        {message === undefined ? (
          <p class="msg">Message hidden: your role may not see payloads.</p>
        ) : (
          <p class="msg" title={visible(message)}>
            {partsOfMessage(visible(message)).map(({ text, varies }, n) =>
              varies ? (
                <span class="var" key={n}>
                  {text}
                </span>
              ) : (
                text
              ),
            )}
          </p>
        )}
        <p class="meta">
          <code data-id={fingerprint}>{fingerprint}</code>
          <span class="tag">{consumer}</span>
          <span>{visible(types.join(', '))}</span>
          {blocks && (
            <a class="tag tag-dead" href={href('keys')}>
              <Silhouette of="dead" />
              blocks {about(blocks.keys, { atLeast: blocks.atLeast })} {blocks.keys === 1 ? 'key' : 'keys'}
            </a>
          )}
        </p>
      </div>
      <span role="img" aria-label={`${count(lately)} in the last 24 hours, by hour`}>
        <Bars values={hours} width={128} height={32} />
      </span>
      <div class="cnt">
        <span class="big with-st f-dead">
          <Silhouette of="dead" />
          <span class="vh">Dead: </span>
          {about(group.count, { atLeast })}
        </span>
      </div>
      <div class="when">
        <Ago at={lastAt} />
        <small>
          first <Time at={firstAt} short />
        </small>
      </div>
      <div class="btns">
        <Button
          small
          class="act-retry"
          needs="retry"
          kind={isLargest ? 'main' : 'plain'}
          onClick={() => onAct('retry')}
        >
          Retry {about(group.count, { atLeast })}…
        </Button>
        <Button small class="act-discard" needs="discard" onClick={() => onAct('discard')}>
          Discard…
        </Button>
      </div>
    </article>
  )
}

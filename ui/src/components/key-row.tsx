/** A blocked key: the message in front, why it stopped, and what waits behind it. */
import { useSignal } from '@preact/signals'
import type { BlockedKey } from '../api.js'
import { about, span } from '../logic/format.js'
import { whyBlocked } from '../logic/key-words.js'
import { queryFor, quote } from '../logic/query.js'
import { visible } from '../logic/visible.js'
import { inUtc } from '../logic/when.js'
import { now } from '../now.js'
import { href, search } from '../router.js'
import { Button } from './button.js'
import { openBulk } from './bulk/open.js'
import { Lane } from './lane.js'
import { Shown } from './shown.js'
import { StatePill } from './state-pill.js'
import { Time } from './time.js'

const COLUMNS = 7

export function KeyRow({ of, box }: { of: BlockedKey; box: string }) {
  const open = useSignal(false)
  const { consumer, key, front, waiting, atLeast, blockedAt } = of
  const q = queryFor({ id: front.id, source: front.source, consumer })
  const why = whyBlocked(front)
  const act = (verb: 'retry' | 'discard'): void =>
    openBulk({
      verb,
      box,
      q,
      ...(waiting > 0 && verb === 'retry' && { hint: `${about(waiting, { atLeast })} behind it follow in order.` }),
    })
  return (
    <>
      <tr data-row-of={front.id}>
        <td class="id c-full o1" title={visible(key)}>
          <a class="row-link" data-id={front.id} href={search(`consumer:${quote(consumer)} key:${quote(key)}`)}>
            <Shown text={key} />
          </a>
        </td>
        <td class="of c-full">
          <span class="name">
            <StatePill state={front.state} />
            <a href={href('message', { id: front.id, source: front.source, consumer })}>
              <Shown text={front.type} />
            </a>
          </span>
        </td>
        <td class="mut c-full clip why" title={visible(why)}>
          <Shown text={why} />
        </td>
        <td class="num c-half" data-l="Waiting">
          {waiting === 0 ? (
            <span class="nil">0</span>
          ) : (
            <button
              type="button"
              class="count-btn"
              aria-expanded={open.value}
              aria-label={`${about(waiting, { atLeast })} wait behind ${visible(key)}. ${open.value ? 'Hide' : 'Show'} the first`}
              onClick={() => (open.value = !open.value)}
            >
              <b>{about(waiting, { atLeast })}</b>
            </button>
          )}
        </td>
        <td class="lane-c c-full o8 lg-hide">
          <Lane waiting={waiting} atLeast={atLeast} state={front.state} />
        </td>
        <td class="num nowrap c-half" data-l="Blocked">
          <span class="f-dead" title={inUtc(blockedAt)}>
            {span(Math.max(0, now.value - Date.parse(blockedAt)))}
          </span>
        </td>
        <td class="num c-full o9">
          <span class="btns nw">
            <Button
              small
              class="act-retry"
              needs="retry"
              label={`Retry the message in front of ${visible(key)}`}
              onClick={() => act('retry')}
            >
              Retry…
            </Button>
            <Button
              small
              class="act-discard"
              needs="discard"
              label={`Discard the message in front of ${visible(key)}`}
              onClick={() => act('discard')}
            >
              Discard…
            </Button>
          </span>
        </td>
      </tr>
      {open.value && (
        <tr class="behind">
          <td class="c-full" colSpan={COLUMNS}>
            <Behind of={of} />
          </td>
        </tr>
      )}
    </>
  )
}

function Behind({ of: { consumer, next, waiting, atLeast } }: { of: BlockedKey }) {
  return (
    <ol class="behind-list" aria-label="What waits behind it, the oldest first">
      {next.map(({ id, source, type, receivedAt }) => (
        <li key={`${source} ${id}`}>
          <StatePill state="pending" />
          <a class="mono" href={href('message', { id, source, consumer })}>
            <Shown text={id} />
          </a>
          <span class="mut">
            <Shown text={type} />
          </span>
          <span class="mut">
            received <Time at={receivedAt} />
          </span>
        </li>
      ))}
      {waiting > next.length && <li class="mut">and {about(waiting - next.length, { atLeast })} more</li>}
    </ol>
  )
}

/** Two bodies under one id: what differs, which of them counts, and what can be done about the other. */
import { useEffect, useId } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Conflict, Fate } from '../../api.js'
import type { Difference } from '../../logic/diff/index.js'
import { bytes } from '../../logic/format.js'
import { queryFor } from '../../logic/query.js'
import { Button } from '../button.js'
import { openBulk } from '../bulk/open.js'
import { copy } from '../copy-button.js'
import { TypeFrom } from '../from.js'
import { Shown } from '../shown.js'
import { Pill } from '../state-pill.js'
import { Time } from '../time.js'
import { compare, differWords, type Compared } from './compare.js'
import { DiffTable } from './diff-table.js'

/** Larger ones are not compared in a browser. */
const MOST_BYTES = 8_000_000

type Found = Compared | 'busy' | 'failed'

export function ConflictPanel({ of: { first, second }, box }: { of: Conflict; box: string }) {
  const title = useId()
  const compared = useSignal<Found>('busy')
  const texts = useSignal<readonly [string, string] | undefined>(undefined)
  useEffect(() => {
    const giveUp = new AbortController()
    const { signal } = giveUp
    void compare({ first, second }, { box, signal, most: MOST_BYTES }).then(
      (found) => {
        if (signal.aborted) return
        compared.value = found.difference
        texts.value = found.texts
      },
      () => {
        if (!signal.aborted) compared.value = 'failed'
      },
    )
    return () => giveUp.abort()
  }, [first, second, box])
  const { id, type, source, consumer } = second
  const shown = compared.value
  return (
    <section class="panel" aria-labelledby={title}>
      <div class="panel-head">
        <Pill tint="quarantined" shape="quarantined" word="conflict" />
        <h2 id={title} class="mono wrap-any">
          <Shown text={id} />
        </h2>
        <span class="sub">
          <TypeFrom type={type} source={source} />
          {typeof shown === 'object' && ` · ${differWords(shown)}`}
        </span>
      </div>
      <div class="diff-heads">
        <div>
          <b>First body</b>
          {first ? (
            <small>
              received <Time at={first.receivedAt} /> · <FateWords of={first} />
            </small>
          ) : (
            <small>Retention has taken it: what it said is not known any more.</small>
          )}
          {first && <small>{bytes(first.body.bytes)}</small>}
        </div>
        <div>
          <b>Second body</b>
          <small>
            received <Time at={second.receivedAt} /> · not run
          </small>
          <small>{bytes(second.body.bytes)}</small>
        </div>
      </div>
      {typeof shown === 'object' ? (
        <DiffTable of={shown} />
      ) : (
        <p class="panel-body mut" role="status">
          {SAID[shown]}
        </p>
      )}
      <div class="act">
        <p>
          The first body counts{first?.state === 'handled' && ' and stays handled'}. Retry would meet the same conflict:
          ask{' '}
          <b>
            <Shown text={source === '' ? 'its producer' : source} />
          </b>{' '}
          for a new id, or discard the second body.
        </p>
        <div class="btns">
          {texts.value && (
            <Button onClick={() => void copy(texts.value!.join('\n\n'), 'both bodies')}>Copy both</Button>
          )}
          <Button
            kind="risk"
            needs="discard"
            onClick={() =>
              openBulk({
                verb: 'discard',
                box,
                q: `${queryFor({ id, source, consumer })} state:quarantined reason:conflict`,
              })
            }
          >
            Discard second body…
          </Button>
        </div>
      </div>
    </section>
  )
}

const SAID: Readonly<Record<Exclude<Found, Difference>, string>> = {
  busy: 'Comparing…',
  'too-large': 'The bodies are too large to be compared here. Open the message to read them.',
  'no-json': 'One of the bodies is no JSON, or nested too deep to be compared.',
  hidden: 'Payload hidden: your role may see that there are two bodies, not what they say.',
  gone: 'There is nothing to compare with.',
  failed: 'The bodies could not be read. Choose the row again to try once more.',
}

function FateWords({ of: { state, handledAt, consumer } }: { of: Fate }) {
  if (state !== 'handled') return <span class={`f-${state}`}>{state}</span>
  return (
    <>
      <span class="f-handled">handled {handledAt !== undefined && <Time at={handledAt} />}</span>
      {consumer !== '' && ` by ${consumer}`}
    </>
  )
}

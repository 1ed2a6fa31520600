/** Two bodies under one id: what differs, which of them counts, and what can be done about the other. */
import { useEffect, useId } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { api, type Conflict, type Fate, type Payload } from '../../api.js'
import { diffBodies, type Difference } from '../../logic/diff/index.js'
import { bytes, plural } from '../../logic/format.js'
import { queryFor } from '../../logic/query.js'
import { Button } from '../button.js'
import { openBulk } from '../bulk/open.js'
import { copy } from '../copy-button.js'
import { TypeFrom } from '../from.js'
import { Shown } from '../shown.js'
import { Pill } from '../state-pill.js'
import { Time } from '../time.js'
import { DiffTable } from './diff-table.js'

/** Larger ones are not compared in a browser. */
const MOST_BYTES = 8_000_000

type Compared = 'busy' | 'too-large' | 'no-json' | 'hidden' | 'gone' | 'failed' | Difference

export function ConflictPanel({ of: { first, second }, box }: { of: Conflict; box: string }) {
  const title = useId()
  const compared = useSignal<Compared>('busy')
  const texts = useSignal<readonly [string, string] | undefined>(undefined)
  useEffect(() => {
    const giveUp = new AbortController()
    const { signal } = giveUp
    void compare({ first, second, box, signal }).then(
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

const SAID: Readonly<Record<Exclude<Compared, Difference>, string>> = {
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

function differWords({ values, atLeast }: Difference): string {
  if (values === 0) return 'the same data: only what is hidden, or how it was sent, differs'
  return `${plural(values, 'value differs', 'values differ')}${atLeast ? ' at least' : ''}`
}

interface Comparing extends Conflict {
  readonly box: string
  readonly signal: AbortSignal
}

async function compare({
  first,
  second,
  box,
  signal,
}: Comparing): Promise<{ difference: Compared; texts?: [string, string] }> {
  if (!first) return { difference: 'gone' }
  const bodies = [first.body, second.body]
  if (bodies.some(({ withheld }) => withheld !== undefined)) return { difference: 'hidden' }
  if (bodies.some(({ bytes: size }) => size > MOST_BYTES)) return { difference: 'too-large' }
  if (bodies.some(({ text }) => text === undefined)) return { difference: 'no-json' }
  const texts = await Promise.all([whole(first, { box, signal }), whole(second, { box, signal })])
  return { difference: (await diffBodies(...texts, { signal })) ?? 'no-json', texts }
}

/** Of a long one, an answer has the first part. */
function whole(
  { id, source, consumer, n, body }: Fate,
  { box, signal }: Pick<Comparing, 'box' | 'signal'>,
): Promise<string> {
  const { whole: isWhole, text }: Payload = body
  if (isWhole && text !== undefined) return Promise.resolve(text)
  return api.body({ box, id, consumer, n, ...(source !== '' && { source }) }, { signal })
}

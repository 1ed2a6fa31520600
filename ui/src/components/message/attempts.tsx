/** What went wrong, in a red box, and every attempt below it, the newest open. */
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import type { Attempt, Fate } from '../../api.js'
import { duration, plural } from '../../logic/format.js'
import { clockTime, inUtc } from '../../logic/when.js'
import { clock } from '../../now.js'
import { Button } from '../button.js'
import { Icon } from '../icon.js'
import { Shown } from '../shown.js'
import { Time } from '../time.js'
import { Trace, wordsOf } from './trace.js'

const AT_FIRST = 4

export function Attempts({ fate, others }: { fate: Fate; others?: ComponentChildren }) {
  const all = useSignal(false)
  const attempts = [...fate.history].sort((a, b) => b.attempt - a.attempt)
  const [newest] = attempts
  const failure = fate.failure ?? (fate.state === 'handled' ? undefined : newest?.error)
  // Of what is in quarantine the reason says more, and stands above.
  const isLoud = failure !== undefined && fate.state !== 'quarantined'
  if (attempts.length === 0 && !failure) return null
  const shown = all.value ? attempts : attempts.slice(0, AT_FIRST)
  const hidden = attempts.slice(shown.length)
  const sameError = hidden.every(({ error }) => wordsOf(error) === wordsOf(attempts[0]!.error))
  return (
    <section class="panel" aria-labelledby="attempts">
      {isLoud ? (
        <div class="say">
          <h2 id="attempts">
            <Shown text={wordsOf(failure)} />
          </h2>
          <p>
            <HowOften fate={fate} newest={newest} /> {others}
          </p>
          {failure.message === undefined && <p class="mut">What the error says is hidden: you may not see payloads.</p>}
        </div>
      ) : (
        <div class="panel-head">
          <h2 id="attempts">Attempts that failed</h2>
          <span class="sub">{`${plural(attempts.length, 'attempt')}${fate.state === 'handled' ? ' before it was handled' : ''}`}</span>
        </div>
      )}
      {attempts.length === 0 && failure && <Trace error={failure} label="Stack" />}
      {shown.map((attempt, n) => (
        <AttemptView attempt={attempt} isOpen={n === 0 && isLoud} key={attempt.attempt} />
      ))}
      {hidden.length > 0 && (
        <div class="note">
          {`${plural(hidden.length, 'earlier attempt')}${sameError ? ', same error' : ''}. `}
          <Button small onClick={() => (all.value = true)}>{`Show all ${attempts.length}`}</Button>
        </div>
      )}
    </section>
  )
}

function HowOften({ fate, newest }: { fate: Fate; newest: Attempt | undefined }) {
  const { state, attempts, dueAt } = fate
  if (!newest) return <>It failed.</>
  const last = (
    <>
      the last at <Time at={newest.at} />.
    </>
  )
  if (state === 'dead') {
    return attempts > 1 ? (
      <>
        All {attempts} attempts failed, {last}
      </>
    ) : (
      <>
        Its one attempt failed at <Time at={newest.at} />, and it is not tried again by itself.
      </>
    )
  }
  return (
    <>
      {plural(attempts, 'attempt')} failed, {last}
      {dueAt !== undefined && (
        <>
          {' '}
          Next try at <Time at={dueAt} />.
        </>
      )}
    </>
  )
}

function AttemptView({ attempt: { attempt, at, error, ms, worker }, isOpen }: { attempt: Attempt; isOpen: boolean }) {
  return (
    <details class="att" open={isOpen}>
      <summary>
        <Icon name="chev" />
        <b>{attempt}</b>
        <time class="nowrap" dateTime={at} title={inUtc(at)}>
          {`${clockTime(at, clock.value)}.${at.slice(20, 23)}`}
        </time>
        <span class="num mut w1">{ms === undefined ? '' : duration(ms)}</span>
        <span class="clip mut e1">
          <Shown text={wordsOf(error)} />
        </span>
        <span class="faint nowrap w1">{worker ?? ''}</span>
      </summary>
      <Trace error={error} label={`Stack of attempt ${attempt}`} />
    </details>
  )
}

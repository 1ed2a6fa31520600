/** "Did it happen?": what a person found out about a call whose outcome nobody recorded. */
import { useId } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { recordAnswer } from '../../answer.js'
import type { Effect, Fate } from '../../api.js'
import { isJson } from '../../logic/json-scan.js'
import { refresh } from '../../live.js'
import { href } from '../../router.js'
import { toastError } from '../../toasts.js'
import { Button } from '../button.js'
import { Shown } from '../shown.js'
import { Pill } from '../state-pill.js'
import { Time } from '../time.js'
import { Why } from '../why.js'

interface Props {
  of: Fate
  box: string
  onDone(): void
}

export function EffectAnswer({ of, box, onDone }: Props) {
  const title = useId()
  const unknown = of.effects.filter(({ state }) => state === 'unknown')
  const { id, source, consumer } = of
  return (
    <section class="panel" aria-labelledby={title}>
      <div class="panel-head">
        <Pill tint="quarantined" shape="quarantined" word="effect-unknown" />
        <h2 id={title} class="mono wrap-any">
          <a href={href('message', { id, source, consumer })}>
            <Shown text={id} />
          </a>
        </h2>
        <span class="sub">{consumer}</span>
      </div>
      {unknown.length === 0 && <p class="panel-body mut">Nothing is unknown any more: somebody has answered.</p>}
      {unknown.map((effect) => (
        <Question key={effect.name} effect={effect} of={of} box={box} onDone={onDone} />
      ))}
    </section>
  )
}

function Question({ effect, of, box, onDone }: Props & { effect: Effect }) {
  const name = useId()
  /** Nobody is led to an answer: it is what they found out. */
  const happened = useSignal<boolean | undefined>(undefined)
  const result = useSignal('')
  const reason = useSignal('')
  const busy = useSignal(false)
  const wrong = happened.value === true && result.value.trim() !== '' && !isJson(result.value)
  const missing = happened.value === undefined ? 'Say first whether it happened.' : undefined
  const record = async (): Promise<void> => {
    if (happened.value === undefined) return
    busy.value = true
    try {
      await recordAnswer({ box, fate: of, effect: effect.name, happened: happened.value, result: result.value, reason: reason.value }) // prettier-ignore
      onDone()
      void refresh()
    } catch (error) {
      toastError('Nothing was changed', error)
    } finally {
      busy.value = false
    }
  }
  return (
    <div class="panel-body stack-v">
      <p>
        <b>
          <Shown text={effect.name} />
        </b>{' '}
        was called at <Time at={effect.calledAt} />, and its outcome was not recorded. Idempotency key{' '}
        <code>
          <Shown text={effect.idempotencyKey} />
        </code>
        . Look it up there, then answer:
      </p>
      <fieldset class="bare">
        <legend class="vh">Did it happen?</legend>
        <div class="choice">
          <label>
            <input
              type="radio"
              name={name}
              checked={happened.value === true}
              onChange={() => (happened.value = true)}
            />
            <span>
              <b>It happened</b>
              <small>The handler runs on with the result below. Nothing is called.</small>
            </span>
          </label>
          <label>
            <input
              type="radio"
              name={name}
              checked={happened.value === false}
              onChange={() => (happened.value = false)}
            />
            <span>
              <b>It did not happen</b>
              <small>It is called again, with the same idempotency key.</small>
            </span>
          </label>
        </div>
      </fieldset>
      {happened.value && (
        <div class="field">
          <label for={`${name}-r`}>Its result, as JSON</label>
          <input
            class="input mono"
            id={`${name}-r`}
            type="text"
            autocomplete="off"
            spellcheck={false}
            value={result.value}
            aria-invalid={wrong}
            {...(wrong && { 'aria-describedby': `${name}-w` })}
            onInput={({ currentTarget }) => (result.value = currentTarget.value)}
          />
          <span class="hint" id={`${name}-w`}>
            {wrong ? 'This is not JSON: a text needs quotes.' : 'Empty: the handler gets nothing back.'}
          </span>
        </div>
      )}
      <Why value={reason.value} onInput={(words) => (reason.value = words)} />
      <div class="btns">
        <Button
          kind="main"
          needs="answer"
          blocked={busy.value ? 'It is being recorded.' : wrong ? 'The result is not JSON.' : missing}
          onClick={() => void record()}
        >
          Record answer
        </Button>
      </div>
    </div>
  )
}

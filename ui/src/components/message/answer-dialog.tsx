/** Asks once more before an answer is recorded: from then on the message goes by it. */
import { useId } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { recordAnswer } from '../../answer.js'
import type { Fate } from '../../api.js'
import { isJson } from '../../logic/json-scan.js'
import { box } from '../../router.js'
import { Button } from '../button.js'
import { Dialog } from '../dialog.js'
import { Environment } from '../environment.js'
import { wordsOf } from '../failed.js'
import { Shown } from '../shown.js'
import { Why } from '../why.js'

interface Props {
  fate: Fate
  effect: string
  happened: boolean
  onClose(): void
  onDone(): void
}

export function AnswerDialog({ fate, effect, happened, onClose, onDone }: Props) {
  const id = useId()
  const result = useSignal('')
  const reason = useSignal('')
  const problem = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const record = async (): Promise<void> => {
    const given = result.value.trim()
    if (given !== '' && !isJson(given))
      return void (problem.value = 'The result has to be JSON: a text needs its quotes.')
    busy.value = true
    try {
      await recordAnswer({ box: box.value, fate, effect, happened, result: given, reason: reason.value })
      onDone()
    } catch (error) {
      problem.value = wordsOf(error)
    }
    busy.value = false
  }
  return (
    <Dialog
      title={happened ? 'It happened?' : 'It did not happen?'}
      badge={<Environment />}
      onClose={onClose}
      foot={
        <div class="end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" onClick={() => void record()} blocked={busy.value ? 'It is being recorded.' : undefined}>
            {happened ? 'It happened' : 'It did not happen'}
          </Button>
        </div>
      }
    >
      <p class="mut">
        {happened ? (
          <>
            <Shown text={effect} /> is not called again. Its message runs on with the result that you give here.
          </>
        ) : (
          <>
            <Shown text={effect} /> is called again, under the same idempotency key, when its message runs.
          </>
        )}
      </p>
      {happened && (
        <div class="field">
          <label for={id}>
            What it gave <span class="faint">(JSON; empty for nothing)</span>
          </label>
          <textarea
            class="input mono"
            id={id}
            rows={3}
            value={result.value}
            onInput={(event) => (result.value = event.currentTarget.value)}
          />
        </div>
      )}
      <Why value={reason.value} onInput={(words) => (reason.value = words)} />
      {problem.value !== undefined && (
        <p class="f-dead" role="alert">
          {problem.value}
        </p>
      )}
    </Dialog>
  )
}

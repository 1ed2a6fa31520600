/** The dialog for changes of many messages: count, confirm, progress, result. */
import { Button } from '../button.js'
import { Dialog } from '../dialog.js'
import { Environment } from '../environment.js'
import { ConfirmStep } from './confirm-step.js'
import { JobStep } from './job-step.js'
import { bulk, closeBulk, recount } from './open.js'

export function BulkHost() {
  const at = bulk.value
  if (!at) return null
  const { state, verb } = at
  // Another question is another dialog: the focus begins anew.
  const key = `${verb} ${at.q}`
  if (state.step === 'following') return <JobStep key={key} id={state.id} ask={at} />
  if (state.step === 'confirm' || state.step === 'starting') return <ConfirmStep key={key} ask={at} state={state} />
  const close = (
    <Button autofocus onClick={closeBulk}>
      {state.step === 'counting' ? 'Cancel' : 'Close'}
    </Button>
  )
  const act = (
    <Button kind="main" blocked="Not counted yet." onClick={() => undefined}>
      Counting…
    </Button>
  )
  return (
    <Dialog
      key={key}
      title={TITLES[state.step][verb]}
      badge={<Environment />}
      onClose={closeBulk}
      foot={
        <span class="end">
          {close}
          {state.step === 'counting' && act}
          {state.step === 'refused' && <Button onClick={() => void recount()}>Count again</Button>}
        </span>
      }
    >
      <div class="field">
        <span class="lab">What</span>
        <code class="query">{at.q === '' ? 'all messages' : at.q}</code>
        <span class="hint" role="status">
          {state.step === 'counting' && 'Counting…'}
          {state.step === 'nothing' && 'Nothing was changed. Somebody else may have done it already.'}
          {state.step === 'refused' && state.message}
        </span>
      </div>
    </Dialog>
  )
}

const TITLES = {
  counting: { retry: 'Retry?', discard: 'Discard?' },
  nothing: { retry: 'No message to retry', discard: 'No message to discard' },
  refused: { retry: 'It cannot be counted', discard: 'It cannot be counted' },
} as const

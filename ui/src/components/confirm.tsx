/** A question before something is changed: what happens, and a button with the verb. */
import type { ComponentChildren } from 'preact'
import { signal } from '@preact/signals'
import { Button } from './button.js'
import { Dialog } from './dialog.js'
import { Environment } from './environment.js'

interface Question {
  readonly title: string
  readonly text: ComponentChildren
  /** "Pause ship-order" */
  readonly verb: string
  readonly risk?: boolean
}

interface Asked extends Question {
  answer(yes: boolean): void
}

const asked = signal<Asked | undefined>(undefined)

/** True once the reader has said yes. One question at a time. */
export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false)
  return new Promise((resolve) => {
    const answer = (yes: boolean): void => {
      asked.value = undefined
      resolve(yes)
    }
    asked.value = { ...question, answer }
  })
}

export function ConfirmHost() {
  const at = asked.value
  if (!at) return null
  return (
    <Dialog
      title={at.title}
      onClose={() => at.answer(false)}
      badge={<Environment />}
      foot={
        <div class="end">
          <Button onClick={() => at.answer(false)}>Cancel</Button>
          <Button kind={at.risk ? 'risk' : 'main'} autofocus onClick={() => at.answer(true)}>
            {at.verb}
          </Button>
        </div>
      }
    >
      <p class="mut">{at.text}</p>
    </Dialog>
  )
}

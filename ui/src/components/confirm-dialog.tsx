/** The dialog of a question: see confirm.ts. */
import { Button } from './button.js'
import { asked } from './confirm.js'
import { Dialog } from './dialog.js'
import { Environment } from './environment.js'

export function ConfirmDialog() {
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

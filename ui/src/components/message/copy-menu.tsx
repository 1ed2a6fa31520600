/** Copies of a message: as JSON, and as a test that delivers it again. */
import { api, type Fate } from '../../api.js'
import { identityOf } from '../../logic/identity.js'
import { asJson, asTest, type Copied } from '../../logic/copies.js'
import { box } from '../../router.js'
import { toastError } from '../../toasts.js'
import { Button } from '../button.js'
import { copy } from '../copy-button.js'

export function CopyMenu({ fate }: { fate: Fate }) {
  const copied = async (write: (message: Copied) => string, what: string): Promise<void> => {
    try {
      await copy(write({ fate, body: await bodyOf(fate), base64: fate.body.base64 }), what)
    } catch (error) {
      toastError('The payload could not be read', error)
    }
  }
  return (
    <span class="btns copies">
      <Button small kind="bare" onClick={() => void copied(asJson, 'as JSON')}>
        Copy as JSON
      </Button>
      <Button small kind="bare" onClick={() => void copied(asTest, 'as a test')}>
        Copy as a test
      </Button>
    </span>
  )
}

async function bodyOf(fate: Fate): Promise<string | undefined> {
  const { body } = fate
  if (body.whole || body.text === undefined) return body.text
  return wholeBody(fate)
}

export function wholeBody(fate: Fate): Promise<string> {
  return api.body({ box: box.value, ...identityOf(fate) })
}

/** A body that was refused: why, what it says as far as it can be shown, and what can be done. */
import { useId } from 'preact/hooks'
import type { Fate } from '../../api.js'
import { bytes } from '../../logic/format.js'
import { queryFor } from '../../logic/query.js'
import { visible } from '../../logic/visible.js'
import { href } from '../../router.js'
import { Button } from '../button.js'
import { openBulk } from '../bulk/open.js'
import { TypeFrom } from '../from.js'
import { Shown } from '../shown.js'
import { Pill } from '../state-pill.js'
import { Time } from '../time.js'

const MOST_SHOWN = 4_000

export function RefusedPanel({ of, box }: { of: Fate; box: string }) {
  const title = useId()
  const { id, source, consumer, type, reason = 'quarantined', receivedAt, body, error, detail } = of
  const why = detail ?? error?.message
  const q = `${queryFor({ id, source, consumer })} state:quarantined`
  return (
    <section class="panel" aria-labelledby={title}>
      <div class="panel-head">
        <Pill tint="quarantined" shape="quarantined" word={reason} />
        <h2 id={title} class="mono wrap-any">
          <Shown text={id} />
        </h2>
        <span class="sub">
          <TypeFrom type={type} source={source} /> · received <Time at={receivedAt} /> · {bytes(body.bytes)}
        </span>
      </div>
      <div class="panel-body stack-v">
        {why !== undefined && (
          <p>
            <Shown text={why} />
          </p>
        )}
        <BodyText of={of} />
      </div>
      <div class="act">
        <p>
          <a class="link" href={href('message', { id, source, consumer })}>
            Open the message
          </a>{' '}
          for its headers and all of its body.
        </p>
        <div class="btns">
          <Button needs="retry" onClick={() => openBulk({ verb: 'retry', box, q })}>
            Retry…
          </Button>
          <Button kind="risk" needs="discard" onClick={() => openBulk({ verb: 'discard', box, q })}>
            Discard…
          </Button>
        </div>
      </div>
    </section>
  )
}

function BodyText({ of: { body } }: { of: Fate }) {
  const { text, base64, withheld } = body
  if (withheld !== undefined) return <p class="mut">Payload hidden: your role may see that it exists, not its data.</p>
  const shown = text ?? base64 ?? ''
  return (
    <>
      {base64 !== undefined && text === undefined && <p class="mut">Its bytes, in base64:</p>}
      <pre class="code" tabIndex={0} role="group" aria-label="Body">
        {visible(shown.slice(0, MOST_SHOWN))}
        {shown.length > MOST_SHOWN && '…'}
      </pre>
    </>
  )
}

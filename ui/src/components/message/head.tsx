/** The head of a message: what it is, its state, what can be done with it, and its fates. */
import { useSignal } from '@preact/signals'
import type { Fate } from '../../api.js'
import { actsFor, type Act } from '../../logic/act.js'
import { moment } from '../../logic/when.js'
import { useShortcuts } from '../../keyboard.js'
import { clock, now } from '../../now.js'
import { href } from '../../router.js'
import { refusal } from '../../session.js'
import { toast } from '../../toasts.js'
import { Button } from '../button.js'
import { CopyButton } from '../copy-button.js'
import { Shown } from '../shown.js'
import { StatePill } from '../state-pill.js'
import { ActDialog } from './act-dialog.js'
import { CopyMenu } from './copy-menu.js'

export function MessageHead({ fate, fates, onChanged }: { fate: Fate; fates: readonly Fate[]; onChanged(): void }) {
  const open = useSignal<Act | undefined>(undefined)
  const acts = actsFor(fate, fate.handledAt === undefined ? '' : moment(fate.handledAt, now.value, clock.value))
  const act = (verb: Act['verb']) => () => {
    const found = acts.find((one) => one.verb === verb)
    const why = found
      ? refusal(verb)
      : `A message that is ${fate.state} cannot be ${verb === 'retry' ? 'retried' : 'discarded'}.`
    if (why === undefined) open.value = found
    else toast({ text: why })
  }
  useShortcuts([
    { keys: 'r', does: 'Retry…', run: act('retry') },
    { keys: 'Shift+d', does: 'Discard…', run: act('discard') },
  ])
  return (
    <div class="msg-head">
      <div class="msg-title">
        <StatePill state={fate.state} large />
        <h1>
          <Shown text={fate.type} />
        </h1>
        <div class="btns">
          {[...acts].reverse().map((one) => (
            <Button
              kind={one.isWanted ? 'main' : 'plain'}
              needs={one.verb}
              key={one.button}
              {...(one.verb === 'retry' && { icon: 'retry' as const })}
              onClick={() => (open.value = one)}
            >
              {one.button}
            </Button>
          ))}
        </div>
      </div>
      <div class="msg-id" data-page-id={fate.id}>
        <code>{fate.id === '' ? <span class="mut">no id</span> : <Shown text={fate.id} />}</code>
        <CopyButton text={fate.id} what="id" />
        <CopyMenu fate={fate} />
      </div>
      {fates.length > 1 && <Fates fates={fates} fate={fate} />}
      {open.value && (
        <ActDialog
          fate={fate}
          act={open.value}
          onClose={() => (open.value = undefined)}
          onDone={() => {
            open.value = undefined
            onChanged()
          }}
        />
      )}
    </div>
  )
}

function Fates({ fates, fate }: { fates: readonly Fate[]; fate: Fate }) {
  const several = new Set(fates.map(({ source }) => source)).size > 1
  return (
    <nav class="fates" aria-label={fate.outbox ? 'Fates: one per sink' : 'Fates: one per consumer'}>
      {fates.map((one) => (
        <a
          class="fate"
          key={`${one.source}\n${one.consumer}\n${one.n ?? ''}`}
          href={href('message', { id: one.id, source: one.source, consumer: one.consumer, n: one.n })}
          {...(one === fate && { 'aria-current': 'true' as const })}
        >
          <Shown text={nameOf(one, several)} /> <StatePill state={one.state} />
        </a>
      ))}
    </nav>
  )
}

function nameOf({ consumer, source, reason, n, outbox }: Fate, several: boolean): string {
  const name = consumer !== '' ? consumer : outbox ? 'no sink' : 'at the door'
  const held = n === undefined || reason === undefined ? name : `${name}, ${reason}`
  return several ? `${source === '' ? 'no source' : source} → ${held}` : held
}

/** Effects of a message: what is on record, and what a person has to find out. */
import { useSignal } from '@preact/signals'
import type { Effect, Fate } from '../../api.js'
import { count } from '../../logic/format.js'
import { Button } from '../button.js'
import { CopyButton } from '../copy-button.js'
import { Panel } from '../panel.js'
import { Shown } from '../shown.js'
import { Silhouette } from '../silhouette.js'
import { Time } from '../time.js'
import { AnswerDialog } from './answer-dialog.js'

interface Asked {
  readonly effect: string
  readonly happened: boolean
}

export function Effects({ fate, onChanged }: { fate: Fate; onChanged(): void }) {
  const asked = useSignal<Asked | undefined>(undefined)
  if (fate.effects.length === 0) return null
  const waits = fate.state === 'quarantined' && fate.reason === 'effect-unknown'
  return (
    <Panel title="Effects" sub="calls outside the database">
      <div class="scroll">
        <table class="t" role="table">
          <thead>
            <tr>
              <th scope="col">Effect</th>
              <th scope="col">Outcome</th>
              <th scope="col">Idempotency key</th>
              <th scope="col" class="num">
                Called
              </th>
              <th scope="col" class="num">
                Calls
              </th>
            </tr>
          </thead>
          <tbody>
            {fate.effects.map((effect) => (
              <Row effect={effect} waits={waits} key={effect.name} />
            ))}
          </tbody>
        </table>
      </div>
      {waits &&
        fate.effects.map(
          ({ name, state }) =>
            state === 'unknown' && (
              <div class="act" key={name}>
                <p>
                  <b>Did it happen?</b> <Shown text={name} /> was called, and no outcome came back. Look it up by its
                  idempotency key.
                </p>
                <div class="btns">
                  <Button needs="answer" onClick={() => (asked.value = { effect: name, happened: false })}>
                    It did not happen
                  </Button>
                  <Button kind="main" needs="answer" onClick={() => (asked.value = { effect: name, happened: true })}>
                    It happened
                  </Button>
                </div>
              </div>
            ),
        )}
      {asked.value && (
        <AnswerDialog
          fate={fate}
          {...asked.value}
          onClose={() => (asked.value = undefined)}
          onDone={() => {
            asked.value = undefined
            onChanged()
          }}
        />
      )}
    </Panel>
  )
}

function Row({ effect, waits }: { effect: Effect; waits: boolean }) {
  const { name, state, idempotencyKey, calledAt, calls, result } = effect
  return (
    <tr>
      <th scope="row" class="c-full">
        <b>
          <Shown text={name} />
        </b>
      </th>
      <td class="c-full">
        {state === 'done' ? (
          <>
            <span class="with-st f-handled">
              <Silhouette of="handled" />
              On record
            </span>{' '}
            {result !== undefined && (
              <code class="mut">
                <Shown text={result.length > 120 ? `${result.slice(0, 120)}…` : result} />
              </code>
            )}
          </>
        ) : (
          <>
            <span class="with-st f-warn">
              <Silhouette of="behind" />
              Unknown
            </span>{' '}
            <span class="mut">{waits ? 'waits for an answer' : 'called again next time'}</span>
          </>
        )}
      </td>
      <td class="id c-full" data-l="Idempotency key" title={idempotencyKey}>
        {shortened(idempotencyKey)} <CopyButton text={idempotencyKey} what="idempotency key" />
      </td>
      <td class="num c-half mut" data-l="Called">
        <Time at={calledAt} />
      </td>
      <td class="num c-half" data-l="Calls">
        {count(calls)} ×
      </td>
    </tr>
  )
}

function shortened(text: string): string {
  return text.length > 20 ? `${text.slice(0, 9)}…${text.slice(-4)}` : text
}

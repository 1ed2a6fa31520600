/** How many, how fast, why: and a button that says what happens, with the number. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { asSentence } from '../../logic/as-sentence.js'
import { amountsOf, messagesOf, pacesOf, type Amount, type BulkState, type Pace } from '../../logic/bulk.js'
import {
  changedWords, confirmWords, consequences, countedWords, paceWords, question, timeWords,
} from '../../logic/bulk-words.js' // prettier-ignore
import { filterWords } from '../../logic/filter-words.js'
import { count } from '../../logic/format.js'
import { piecesOf, unquote, valuesOf } from '../../logic/query.js'
import { Banner } from '../banner.js'
import { Button } from '../button.js'
import { Dialog } from '../dialog.js'
import { Environment } from '../environment.js'
import { Segmented } from '../segmented.js'
import { Silhouette } from '../silhouette.js'
import { Why } from '../why.js'
import { limits } from './limits.js'
import { choose, closeBulk, start, type BulkAsk } from './open.js'

interface Props {
  ask: BulkAsk & { readonly countedAt: number }
  state: Extract<BulkState, { step: 'confirm' | 'starting' }>
}

export function ConfirmStep({ ask, state }: Props) {
  const { verb, q, where, hint } = ask
  const { counted, choice, before, message } = state
  const messages = messagesOf(counted, choice)
  const isDiscard = verb === 'discard'
  const blocked =
    state.step === 'starting'
      ? 'It starts.'
      : isDiscard && choice.reason.trim() === ''
        ? 'Say why first: it is for the audit log.'
        : undefined
  return (
    <Dialog
      title={question(verb, counted, where)}
      badge={<Environment />}
      onClose={closeBulk}
      foot={
        <span class="end">
          <Button onClick={closeBulk}>Cancel</Button>
          <Button kind={isDiscard ? 'risk' : 'main'} needs={verb} blocked={blocked} onClick={() => void start()}>
            {confirmWords(verb, messages)}
          </Button>
        </span>
      }
    >
      {before !== undefined && (
        <Banner tone="warn" icon="retry">
          <b>The count has changed.</b> {changedWords(before, counted.count)}
        </Banner>
      )}
      {message !== undefined && (
        <Banner tone="bad" icon="failures">
          <b>Nothing was changed.</b> {message}
        </Banner>
      )}
      <div class="field">
        <span class="lab">What</span>
        <span>{wordsOf(q)}</span>
        {q !== '' && <code class="query">{q}</code>}
        <span class="hint">{hint ?? <CountedAt verb={verb} at={ask.countedAt} />}</span>
      </div>
      {counted.count > 1 && (
        <div class="field">
          <span class="lab">How many</span>
          <Segmented<Amount>
            label="How many"
            value={choice.amount}
            choices={amountsOf(counted.count).map((value) => ({ value, text: amountWords(value, counted.count) }))}
            onChoose={(amount) => choose({ amount })}
          />
        </div>
      )}
      <div class="field">
        <span class="lab">How fast</span>
        <Segmented<Pace>
          label="How fast"
          value={choice.pace}
          choices={pacesOf(messages, limits()).map((value) => ({ value, text: paceWords(value) }))}
          onChoose={(pace) => choose({ pace })}
        />
        <span class="hint">{timeWords(messages, choice.pace)}</span>
      </div>
      <Why
        value={choice.reason}
        required={isDiscard}
        onInput={(reason) => choose({ reason })}
        onEnter={() => blocked === undefined && void start()}
      />
      <ul class="bul">
        {consequences(verb, counted).map((words, at) => (
          <li key={words}>
            <Silhouette
              of={isDiscard ? 'discarded' : at === 0 ? 'pending' : 'handled'}
              class={at === 0 ? '' : 'f-handled'}
            />
            <span>{words}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

/** Says how old the count is, by the second. */
function CountedAt({ verb, at }: { verb: BulkAsk['verb']; at: number }) {
  const age = useSignal(Date.now() - at)
  useEffect(() => {
    age.value = Date.now() - at
    const timer = setInterval(() => (age.value = Date.now() - at), 1_000)
    return () => clearInterval(timer)
  }, [at])
  return <>{countedWords(verb, age.value)}</>
}

function amountWords(amount: Amount, all: number): string {
  if (amount === 'all') return `All ${count(all)}`
  return amount === 1 ? 'Only 1' : count(amount)
}

/** The filter in words, as a sentence begins. */
export function wordsOf(q: string): string {
  const parts = piecesOf(q).map(({ qualifier = 'id', value }) => ({ qualifier, values: valuesOf(value).map(unquote) }))
  return asSentence(filterWords(parts))
}

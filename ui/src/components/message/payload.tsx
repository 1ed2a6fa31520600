/** A payload: tree, raw, copy. Of a long one the first part, and the rest when it is asked for. */
import { useMemo, useId } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Payload } from '../../api.js'
import { bytes, plural } from '../../logic/format.js'
import { isJson } from '../../logic/json-scan.js'
import { countRedacted, type Source } from '../../logic/payload.js'
import { toastError } from '../../toasts.js'
import { Button } from '../button.js'
import { CopyButton } from '../copy-button.js'
import { Empty } from '../empty.js'
import { PayloadTree } from './payload-tree.js'
import { Bytes, Raw } from './raw.js'

interface Props {
  title: string
  payload: Payload
  /** Asks for the whole of it. */
  whole?(): Promise<string>
  /** Where it can be saved from. */
  href?: string | undefined
}

type View = 'tree' | 'raw'

export function PayloadPanel({ title, payload, whole, href }: Props) {
  const id = useId()
  const more = useSignal<string | undefined>(undefined)
  const loading = useSignal(false)
  const chosen = useSignal<View | undefined>(undefined)
  const text = more.value ?? payload.text
  const source: Source = { text: text ?? '', redacted: payload.redacted === true }
  const hasTree = useMemo(
    () => text !== undefined && (payload.whole || more.value !== undefined) && isJson(text),
    [text],
  )
  const isLong = !payload.whole
  const view: View = hasTree ? (chosen.value ?? (isLong ? 'raw' : 'tree')) : 'raw'
  const showAll = async (): Promise<void> => {
    loading.value = true
    try {
      more.value = await whole!()
    } catch (error) {
      toastError('The rest could not be shown', error)
    }
    loading.value = false
  }
  return (
    <section class="panel" aria-labelledby={`${id}h`}>
      <div class="panel-head">
        <h2 id={`${id}h`}>{title}</h2>
        <span class="sub">{aboutOf(payload, source)}</span>
        <div class="end">
          {text !== undefined && <Tabs id={id} view={view} hasTree={hasTree} onChoose={(to) => (chosen.value = to)} />}
          {href !== undefined && (
            <a class="btn btn-sm btn-bare" href={href} download="body">
              Save
            </a>
          )}
          {(text ?? payload.base64) !== undefined && (
            <CopyButton text={text ?? payload.base64!} what={copiedWhat(title, payload, more.value !== undefined)} />
          )}
        </div>
      </div>
      {text === undefined ? (
        <Without payload={payload} title={title} />
      ) : (
        <div
          id={`${id}p`}
          role="tabpanel"
          aria-labelledby={`${id}${view}`}
          class={view === 'tree' ? 'tree' : ''}
          {...(view === 'tree' && { tabIndex: 0 })}
        >
          {view === 'tree' ? <PayloadTree source={source} /> : <Raw text={text} label={`${title}, raw`} />}
        </div>
      )}
      {isLong && text !== undefined && more.value === undefined && (
        <div class="note">
          {`The first ${bytes(text.length)} of ${bytes(payload.bytes)}. `}
          {whole && (
            <Button small onClick={() => void showAll()} blocked={loading.value ? 'It is on its way.' : undefined}>
              {loading.value ? 'Loading…' : `Show all ${bytes(payload.bytes)}`}
            </Button>
          )}
        </div>
      )}
    </section>
  )
}

function aboutOf(payload: Payload, source: Source): string {
  const masked = countRedacted(source)
  const redacted = masked > 0 ? `${plural(masked, 'value')} redacted` : payload.redacted ? 'redacted' : undefined
  const kind = payload.base64 === undefined ? undefined : 'could not be decoded'
  return [bytes(payload.bytes), kind, redacted].filter((one) => one !== undefined).join(' · ')
}

function copiedWhat(title: string, { whole, base64 }: Payload, hasMore: boolean): string {
  const noun = title.toLowerCase()
  return whole || hasMore ? `${noun}${base64 === undefined ? '' : ' as base64'}` : `the first part of the ${noun}`
}

function Tabs({ id, view, hasTree, onChoose }: { id: string; view: View; hasTree: boolean; onChoose(to: View): void }) {
  const views: readonly View[] = hasTree ? ['tree', 'raw'] : ['raw']
  const move = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return
    const to = views[(views.indexOf(view) + 1) % views.length]!
    onChoose(to)
    document.getElementById(`${id}${to}`)?.focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label="Payload view" onKeyDown={move}>
      {views.map((one) => (
        <button
          type="button"
          role="tab"
          id={`${id}${one}`}
          key={one}
          aria-selected={one === view}
          aria-controls={`${id}p`}
          tabIndex={one === view ? 0 : -1}
          onClick={() => onChoose(one)}
        >
          {one === 'tree' ? 'Tree' : 'Raw'}
        </button>
      ))}
    </div>
  )
}

function Without({ payload, title }: { payload: Payload; title: string }) {
  if (payload.base64 !== undefined) {
    return (
      <>
        <p class="att-note">It is no JSON in UTF-8, so it is shown as its bytes. Nothing of it was changed.</p>
        <Bytes base64={payload.base64} label={`${title}, bytes`} />
      </>
    )
  }
  if (payload.withheld === 'hidden') {
    return (
      <Empty icon="lock" title={`${title} hidden`} level={3}>
        You may look at messages, not at what is in them. The right that is missing is “bodies”.
      </Empty>
    )
  }
  if (payload.withheld === 'unredactable') {
    return (
      <Empty icon="lock" title={`${title} hidden`} level={3}>
        What is secret in it cannot be told from the rest, so none of it is shown to anybody here.
      </Empty>
    )
  }
  return (
    <Empty icon="messages" title="Empty" level={3}>
      Nothing is stored under this name, or it was redacted as a whole.
    </Empty>
  )
}

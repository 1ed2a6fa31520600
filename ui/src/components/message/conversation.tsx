/** What caused a message, and what it caused, in all boxes: a tree, with a bar for each on one axis of time. */
import { useSignal } from '@preact/signals'
import { api, type Conversation, type Fate, type Link } from '../../api.js'
import { conversationNote, flowOf, keyOf, placeOf, type Row } from '../../logic/conversation.js'
import { duration } from '../../logic/format.js'
import { useLoad } from '../../load.js'
import { now } from '../../now.js'
import { box, href } from '../../router.js'
import { toastError } from '../../toasts.js'
import { Button } from '../button.js'
import { Loaded } from '../loaded.js'
import { Panel } from '../panel.js'
import { Shown } from '../shown.js'
import { Silhouette } from '../silhouette.js'
import { SkeletonRows } from '../skeleton.js'

export function ConversationPanel({ fates, current }: { fates: readonly Fate[]; current: Fate }) {
  const { id, source } = current
  const own = fates.filter((fate) => fate.source === source && fate.n === undefined)
  const load = useLoad(own.length === 0 ? undefined : `${box.value}\n${source}\n${id}`, (signal) =>
    api.conversation({ box: box.value, id, source }, { signal }),
  )
  const more = useSignal<ReadonlyMap<string, Conversation>>(new Map())
  const open = async (link: Link): Promise<void> => {
    try {
      const answer = await api.conversation({ box: link.box, id: link.id, source: link.source })
      more.value = new Map([...more.value, [keyOf(link), answer]])
    } catch (error) {
      toastError('What it caused could not be found', error)
    }
  }
  if (own.length === 0) return null
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {(conversation) => {
        const known = { fates: own, box: box.value, conversation, more: more.value }
        const { rows, spanMs } = flowOf(known, current, now.value)
        const note = conversationNote(conversation)
        return (
          <Panel title="Conversation" sub={`what caused this message, and what it caused · ${duration(spanMs)}`}>
            <ol class="flow">
              {rows.map((row, n) => (
                <FlowRow row={row} onOpen={() => void open(row.link)} key={n} />
              ))}
            </ol>
            {note !== undefined && <p class="note">{note}</p>}
          </Panel>
        )
      }}
    </Loaded>
  )
}

function Waiting() {
  return (
    <div class="panel">
      <SkeletonRows rows={3} />
    </div>
  )
}

function FlowRow({ row, onOpen }: { row: Row; onOpen(): void }) {
  const { link, elbows, isHere, from, width, words, canOpen, recipients } = row
  const isOne = recipients === 1
  const where = isOne ? placeOf(link, box.value) : `${recipients} recipients`
  return (
    <li class="flow-row" {...(isHere && { 'aria-current': 'true' as const })}>
      <span class="nm">
        {elbows.map((goesOn, n) => (
          <Elbow goesOn={goesOn} isOwn={n === elbows.length - 1} key={n} />
        ))}
        {isOne && (
          <span class={`f-${link.state} with-st`}>
            <Silhouette of={link.state} />
            <span class="vh">{link.state}</span>
          </span>
        )}
        <a class="clip" href={href('message', { id: link.id, source: link.source, consumer: link.consumer }, link.box)}>
          <Shown text={link.type} />
        </a>
        <span class="c">
          <Shown text={where} />
        </span>
        {canOpen && <Button small kind="bare" icon="chev" label={`What ${link.type} caused`} onClick={onOpen} />}
      </span>
      <span class="bar-c">
        <svg class="bar" aria-hidden="true">
          <line class="grid-l" x1="0" x2="100%" y1="6" y2="6" />
          {isOne && <rect class={`b-${link.state}`} x={`${from}%`} y="2" width={`${width}%`} height="8" rx="2" />}
        </svg>
      </span>
      <span class="num">{words}</span>
    </li>
  )
}

function Elbow({ goesOn, isOwn }: { goesOn: boolean; isOwn: boolean }) {
  const path = !isOwn ? (goesOn ? 'M6 0v34' : '') : goesOn ? 'M6 0v34M6 14a3 3 0 0 0 3 3h4' : 'M6 0v14a3 3 0 0 0 3 3h4'
  return (
    <svg class="elbow" viewBox="0 0 14 34" aria-hidden="true">
      <path d={path} />
    </svg>
  )
}

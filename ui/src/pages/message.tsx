/** A message: what went wrong with it, what is in it, what happened to it, and what to do. */
import { useEffect, useRef } from 'preact/hooks'
import { announce } from '../announce.js'
import { api, DashboardError, type Fate, type MessageAnswer } from '../api.js'
import { Empty } from '../components/empty.js'
import { Loaded } from '../components/loaded.js'
import { Attempts } from '../components/message/attempts.js'
import { ConversationPanel } from '../components/message/conversation.js'
import { wholeBody } from '../components/message/copy-menu.js'
import { Effects } from '../components/message/effects.js'
import { Facts, Headers } from '../components/message/facts.js'
import { MessageHead } from '../components/message/head.js'
import { Others } from '../components/message/others.js'
import { PayloadPanel } from '../components/message/payload.js'
import { Timeline } from '../components/message/timeline.js'
import { Shown } from '../components/shown.js'
import { SkeletonBlock } from '../components/skeleton.js'
import { useCrumbs } from '../crumbs.js'
import { identityOf } from '../logic/identity.js'
import { adviceFor } from '../logic/reasons.js'
import { visible } from '../logic/visible.js'
import { useLoad } from '../load.js'
import { useLively } from '../lively.js'
import { box, href, query } from '../router.js'
import { told } from '../told.js'

/** Often enough to see a message being handled. What is over changes seldom, and its payload may be long. */
const LOOK_MS = 2_000
const LOOK_SELDOM_MS = 10_000

export function MessagePage() {
  const { id = '', source } = query.value
  const load = useLoad(id === '' ? undefined : `${box.value}\n${source ?? ''}\n${id}`, (signal) =>
    api.message({ box: box.value, id, ...(source !== undefined && { source }) }, { signal }),
  )
  const isOver = load.value.value?.fates.every(({ state }) => state !== 'pending' && state !== 'processing') ?? false
  useLively(isOver ? LOOK_SELDOM_MS : LOOK_MS, load.reload)
  const fate = load.value.value && choose(load.value.value, query.value)
  useCrumbs([{ text: 'Messages', href: href('messages') }, { text: fate ? visible(fate.type) : 'Message' }])
  if (id === '') {
    return (
      <div class="panel">
        <Empty icon="search" level={1} title="Which message?" actions={<Back />}>
          The address names no id.
        </Empty>
      </div>
    )
  }
  const failure = load.failure.value
  if (!fate && failure && failure.error instanceof DashboardError && failure.error.code === 'NOT_FOUND') {
    return (
      <div class="panel">
        <Empty icon="search" level={1} title="There is no such message" actions={<Back />}>
          Nobody has sent <Shown text={id} /> to this box, or retention has taken it.
        </Empty>
      </div>
    )
  }
  return (
    <>
      {!fate && <h1 class="vh">Message</h1>}
      <Loaded of={load} waiting={<Waiting />}>
        {({ fates }) => fate && <Message fates={fates} fate={fate} onChanged={load.reload} />}
      </Loaded>
    </>
  )
}

function Message({ fates, fate, onChanged }: { fates: readonly Fate[]; fate: Fate; onChanged(): void }) {
  useAnnounced(fate)
  const may = fate.body.withheld === undefined
  const asks = fate.reason === 'effect-unknown' && fate.state === 'quarantined'
  const effects = <Effects fate={fate} onChanged={onChanged} />
  return (
    <>
      <MessageHead fate={fate} fates={fates} onChanged={onChanged} />
      <div class="cols">
        <div class="stack-v">
          <Held fate={fate} />
          {asks && effects}
          <Attempts fate={fate} others={<Others fate={fate} />} key={`${fate.consumer} ${fate.n ?? ''}`} />
          {!asks && effects}
          <PayloadPanel
            title="Payload"
            payload={fate.body}
            whole={() => wholeBody(fate)}
            href={may && !fate.outbox ? bodyHref(fate) : undefined}
            key={fate.body.text ?? fate.body.base64 ?? ''}
          />
          {fate.result && <PayloadPanel title="Result" payload={fate.result} />}
          <ConversationPanel fates={fates} current={fate} />
        </div>
        <aside class="stack-v" aria-label="About this message">
          <Facts fate={fate} />
          <Timeline fate={fate} />
          <Headers headers={fate.headers} />
        </aside>
      </div>
    </>
  )
}

/** Why it is in quarantine, and what to do. */
function Held({ fate }: { fate: Fate }) {
  if (fate.reason === undefined || fate.state !== 'quarantined') return null
  const { title, text } = adviceFor(fate)
  return (
    <section class="panel" aria-labelledby="held">
      <div class="say say-q">
        <h2 id="held">{title}</h2>
        {fate.detail !== undefined && (
          <p>
            <Shown text={fate.detail} />
          </p>
        )}
        <p>
          <Shown text={text} />{' '}
          {fate.reason === 'conflict' && (
            <a class="link" href={href('quarantine', { n: fate.n })}>
              Compare both bodies
            </a>
          )}
        </p>
      </div>
    </section>
  )
}

/** The one that the address names; of several the one that needs somebody most. */
function choose(
  { fates }: MessageAnswer,
  { consumer, source = '', n }: Partial<Record<string, string>>,
): Fate | undefined {
  const held = fates.filter((fate) => consumer === undefined || fate.consumer === consumer)
  // An address has no empty part: without a source it may mean those that have none.
  const named = [...held.filter((fate) => fate.source === source), ...held.filter((fate) => fate.source !== source)]
  const exact = named.find((fate) => fate.n === n)
  const worst = (['dead', 'quarantined', 'processing', 'pending'] as const).flatMap(
    (state) => fates.find((fate) => fate.state === state) ?? [],
  )
  return consumer === undefined && n === undefined ? (worst[0] ?? fates[0]) : (exact ?? named[0] ?? fates[0])
}

function useAnnounced({ consumer, state }: Fate): void {
  const before = useRef<{ consumer: string; state: string } | undefined>(undefined)
  useEffect(() => {
    if (before.current?.consumer === consumer && before.current.state !== state) announce(`It is ${state} now`)
    before.current = { consumer, state }
  }, [consumer, state])
}

function bodyHref(fate: Fate): string {
  const at = new URLSearchParams(identityOf(fate))
  return `${told.base}/api/v1/boxes/${encodeURIComponent(box.value)}/body?${at.toString()}`
}

function Back() {
  return (
    <a class="btn" href={href('messages')}>
      Messages
    </a>
  )
}

function Waiting() {
  return (
    <div class="panel">
      <div class="panel-body">
        <SkeletonBlock />
      </div>
    </div>
  )
}

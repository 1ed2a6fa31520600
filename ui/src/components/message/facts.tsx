/** Facts of a message, and its headers. */
import type { ComponentChildren } from 'preact'
import type { Fate } from '../../api.js'
import { clockTime, dayUnlessToday, inUtc } from '../../logic/when.js'
import { quote } from '../../logic/query.js'
import { runsOf } from '../../logic/timeline.js'
import { overview } from '../../live.js'
import { clock, now } from '../../now.js'
import { href, search } from '../../router.js'
import { Panel } from '../panel.js'
import { Shown } from '../shown.js'
import { Tag } from '../tag.js'
import { Ago, Time } from '../time.js'

export function Facts({ fate }: { fate: Fate }) {
  const { consumer, state, mostAttempts, source, key, subject, receivedAt, time, dueAt, correlationId, causationId } =
    fate
  const attempts = runsOf(fate)
  const mode = overview.value?.consumers.find(({ name }) => name === consumer)?.mode
  const traceId = /^\w{2}-(\w{32})-/.exec(fate.headers?.['traceparent'] ?? '')?.[1]
  return (
    <Panel title="Facts">
      <dl class="facts">
        <Fact name={fate.outbox ? 'Sink' : 'Consumer'}>
          {consumer === '' ? (
            <span class="mut">{fate.outbox ? 'no sink wants it yet' : 'refused at the door'}</span>
          ) : (
            <Shown text={consumer} />
          )}{' '}
          {mode && <Tag>{mode}</Tag>}
        </Fact>
        {fate.reason !== undefined && <Fact name="Reason">{fate.reason}</Fact>}
        <Fact name="Attempts">
          <span class={state === 'dead' ? 'f-dead' : attempts === 0 ? 'nil' : ''}>{attempts}</span>
          {mostAttempts !== undefined && attempts > 0 && <span class="mut"> of {mostAttempts}</span>}
        </Fact>
        <Fact name="Source">
          {source === '' ? (
            <None />
          ) : (
            <a class="link" href={search(`source:${quote(source)}`)}>
              <Shown text={source} />
            </a>
          )}
        </Fact>
        <Fact name="Key" mono={key !== undefined}>
          {key === undefined ? (
            <None />
          ) : (
            <a class="link" href={search(`key:${quote(key)}`)}>
              <Shown text={key} />
            </a>
          )}
        </Fact>
        {fate.blocked && (
          <Fact name="Lane">
            <a class="link" href={href('keys')}>
              blocked
            </a>{' '}
            <span class="mut">by {state === 'dead' || state === 'quarantined' ? 'this message' : 'one before it'}</span>
          </Fact>
        )}
        <Fact name="Subject">{subject === undefined ? <None /> : <Shown text={subject} />}</Fact>
        <Fact name={fate.outbox ? 'Sent' : 'Received'}>
          <Exact at={receivedAt} />{' '}
          <span class="faint">
            · <Ago at={receivedAt} />
          </span>
        </Fact>
        <Fact name="Produced">{time === undefined ? <None /> : <Exact at={time} />}</Fact>
        {dueAt !== undefined && (
          <Fact name="Next try">
            <Time at={dueAt} />
          </Fact>
        )}
        {traceId !== undefined && (
          <Fact name="Trace" mono>
            <span class="pick-all">{traceId}</span>
          </Fact>
        )}
        <Fact name="Correlation" mono={correlationId !== fate.id}>
          {correlationId === fate.id ? (
            <span class="mut">its own id</span>
          ) : (
            <a class="link" href={search(`id:${quote(correlationId)}`)}>
              <Shown text={correlationId} />
            </a>
          )}
        </Fact>
        {causationId !== undefined && (
          <Fact name="Caused by" mono>
            <a class="link" href={search(`id:${quote(causationId)}`)}>
              <Shown text={causationId} />
            </a>
          </Fact>
        )}
        <Kept fate={fate} />
      </dl>
    </Panel>
  )
}

/** What retention does with it. Published events go at once, unless their sink keeps them. */
function Kept({ fate: { state, keptUntil, outbox } }: { fate: Fate }) {
  if (outbox) return null
  const settled = state === 'handled' || state === 'discarded'
  // Its consumer has never said for how long.
  if (settled && keptUntil === undefined) return null
  const words = state === 'dead' || state === 'quarantined' ? 'a person decides' : 'it is handled, and longer'
  return <Fact name="Kept until">{keptUntil === undefined ? words : <Time at={keptUntil} />}</Fact>
}

export function Headers({ headers }: { headers: Readonly<Record<string, string>> | undefined }) {
  if (headers === undefined) {
    return (
      <Panel title="Headers" sub="hidden">
        <p class="note bare-note">You may not see headers here.</p>
      </Panel>
    )
  }
  const all = Object.entries(headers)
  if (all.length === 0) return null
  return (
    <Panel title="Headers" sub={String(all.length)}>
      <dl class="facts facts-v">
        {all.map(([name, value]) => (
          <Fact name={name} mono key={name}>
            {value === '[redacted]' ? <Tag>redacted</Tag> : <Shown text={value} />}
          </Fact>
        ))}
      </dl>
    </Panel>
  )
}

function Fact({ name, mono = false, children }: { name: string; mono?: boolean; children: ComponentChildren }) {
  return (
    <>
      <dt class={mono && /^[a-z]/.test(name) ? 'mono' : ''}>
        <Shown text={name} />
      </dt>
      <dd class={mono ? 'mono' : ''}>{children}</dd>
    </>
  )
}

function None() {
  return <span class="nil">–</span>
}

function Exact({ at }: { at: string }) {
  return (
    <time dateTime={at} title={inUtc(at)}>
      {`${dayUnlessToday(at, now.value, clock.value)}${clockTime(at, clock.value)}.${at.slice(20, 23)}`}
    </time>
  )
}

/** Outbox: events by type, where they go, and who publishes them. */
import type { ComponentChildren } from 'preact'
import { api, type Outbox, type SinkStatus } from '../api.js'
import { Button } from '../components/button.js'
import { openBulk } from '../components/bulk/open.js'
import { CountLink } from '../components/count-link.js'
import { Empty } from '../components/empty.js'
import { Loaded } from '../components/loaded.js'
import { News } from '../components/news.js'
import { PageHead } from '../components/page-head.js'
import { Panel } from '../components/panel.js'
import { Shown } from '../components/shown.js'
import { Speed } from '../components/speed.js'
import { SkeletonRows } from '../components/skeleton.js'
import { Pill, type Tint } from '../components/state-pill.js'
import { Time } from '../components/time.js'
import type { Shape } from '../components/silhouette.js'
import { overview } from '../live.js'
import { useLoad } from '../load.js'
import { about, duration } from '../logic/format.js'
import { outboxSentence, outboxTitle, SINK_WORDS, sinkState, type SinkState } from '../logic/outbox-words.js'
import { quote } from '../logic/query.js'
import { lastError } from '../logic/sink-down.js'
import { visible } from '../logic/visible.js'
import { useNews } from '../news.js'
import { box, search } from '../router.js'

export function OutboxPage() {
  const of = box.value
  const load = useLoad(`outbox ${of}`, (signal) => api.outbox({ box: of }, { signal }))
  const dead = overview.value?.sinks.reduce((sum, sink) => sum + sink.dead, 0)
  const news = useNews(load, dead)
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {(outbox) => (
        <>
          <PageHead title={outboxTitle(outbox, overview.value?.findings)} end={<News n={news} onShow={load.reload} />}>
            {outboxSentence(outbox)}
          </PageHead>
          <Sinks outbox={outbox} of={of} />
          <Types outbox={outbox} />
        </>
      )}
    </Loaded>
  )
}

const LOOKS: Readonly<Record<SinkState, readonly [Tint, Shape]>> = {
  failing: ['dead', 'behind'],
  dead: ['dead', 'dead'],
  alone: ['warn', 'paused'],
  behind: ['dead', 'behind'],
  busy: ['processing', 'processing'],
  up: ['handled', 'up'],
  idle: ['pending', 'pending'],
}

function Sinks({ outbox, of }: { outbox: Outbox; of: string }) {
  const sinks = outbox.sinks.filter(({ name, ready, delayed, dead }) => name !== '' || ready + delayed + dead > 0)
  if (sinks.length === 0) {
    return (
      <section class="panel">
        <Empty icon="outbox" title="No sink is attached">
          Events are sent with <code>ctx.send</code> or <code>box.send</code>, and published to what{' '}
          <code>box.to(sink)</code> attaches.
        </Empty>
      </section>
    )
  }
  return (
    <Panel title="Sinks" sub="where events go, and who publishes them">
      <Table
        head={['Sink', 'State', 'Waiting', 'Delayed', 'Published /s', 'Dead', 'Oldest due', 'Relays', '']}
        right={[2, 3, 4, 5, 6, 8]}
      >
        {sinks.map((sink) => (
          <SinkRow key={sink.name} sink={sink} of={of} />
        ))}
      </Table>
    </Panel>
  )
}

function SinkRow({ sink, of }: { sink: SinkStatus; of: string }) {
  const { name, types, processes, ready, delayed, dead, most, lagMs, failingSince, held, publishedPerSecond } = sink
  const state = sinkState(sink, overview.value?.findings)
  const [tint, shape] = LOOKS[state]
  const q = `box:outbox consumer:${quote(name)}`
  const failed = lastError(sink, overview.value?.findings)
  return (
    <tr>
      <td class="c-full o1">
        <span class="sink-name">
          {name === '' ? (
            <span class="mut">no sink yet</span>
          ) : (
            <a class="row-link" href={search(q)}>
              {name}
            </a>
          )}
          {types && <small class="mut">{visible(types.join(', '))}</small>}
          {failed !== undefined && (
            <small class="f-dead" title={visible(failed)}>
              <Shown text={failed} />
            </small>
          )}
        </span>
      </td>
      <td class="c-half o1">
        <Pill tint={tint} shape={shape} word={SINK_WORDS[state]} />
        {failingSince !== undefined && (
          <small class="mut after-pill">
            since <Time at={failingSince} short />
          </small>
        )}
      </td>
      <td class="num c-half" data-l="Waiting">
        <CountLink n={ready} atLeast={ready >= most} href={search(`${q} state:pending`)} label={`wait for ${name}`} />
      </td>
      <td class="num c-half md-hide" data-l="Delayed">
        <CountLink
          n={delayed}
          atLeast={delayed >= most}
          href={search(`${q} state:pending`)}
          label={`delayed for ${name}`}
        />
      </td>
      <td class="num c-half" data-l="Published /s">
        <Speed of={publishedPerSecond} />
      </td>
      <td class="num c-half" data-l="Dead">
        <CountLink
          n={dead}
          atLeast={dead >= most}
          state="dead"
          href={search(`${q} state:dead`)}
          label={`dead for ${name}`}
        />
      </td>
      <td class="num nowrap c-half" data-l="Oldest due">
        {lagMs > 0 ? duration(lagMs) : <span class="nil">–</span>}
      </td>
      <td class="c-full mut lg-hide" data-l="Relays">
        <Relays processes={processes} held={held} />
      </td>
      <td class="num c-full o9">
        {dead > 0 && (
          <span class="btns nw">
            <Button
              small
              needs="retry"
              label={`Retry ${about(dead)} dead events of ${name}`}
              onClick={() => openBulk({ verb: 'retry', box: of, q: `${q} state:dead` })}
            >
              Retry {about(dead, { atLeast: dead >= most })}…
            </Button>
            <Button
              small
              needs="discard"
              label={`Discard ${about(dead)} dead events of ${name}`}
              onClick={() => openBulk({ verb: 'discard', box: of, q: `${q} state:dead` })}
            >
              Discard…
            </Button>
          </span>
        )}
      </td>
    </tr>
  )
}

function Relays({ processes, held }: { processes: readonly string[]; held: boolean }) {
  if (processes.length === 0) return <>none</>
  const [first = '', ...more] = processes
  return (
    <span title={processes.join('\n')}>
      <code>{first}</code>
      {more.length > 0 && ` and ${more.length} more`}
      {held && ' · publishes now'}
    </span>
  )
}

function Types({ outbox: { types } }: { outbox: Outbox }) {
  if (types.length === 0) return null
  return (
    <Panel title="Events" sub="by type">
      <Table head={['Type', 'Pending', 'Processing', 'Dead', 'Discarded', 'Oldest due']} right={[1, 2, 3, 4, 5]}>
        {types.map((counts) => {
          const { type, estimated, lagMs } = counts
          const q = `box:outbox type:${quote(type)}`
          const cell = (state: 'pending' | 'processing' | 'dead' | 'discarded', hide = '') => (
            <td class={`num c-half ${hide}`} data-l={`${state[0]!.toUpperCase()}${state.slice(1)}`}>
              <CountLink
                n={counts[state]}
                {...(state === 'dead' && { state })}
                estimated={estimated}
                href={search(`${q} state:${state}`)}
                label={`${state}, ${type}`}
              />
            </td>
          )
          return (
            <tr key={type}>
              <td class="c-full o1">
                <a class="row-link" href={search(q)}>
                  <Shown text={type} />
                </a>
              </td>
              {cell('pending')}
              {cell('processing', 'md-hide')}
              {cell('dead')}
              {cell('discarded', 'md-hide')}
              <td class="num nowrap c-half" data-l="Oldest due">
                {lagMs > 0 ? duration(lagMs) : <span class="nil">–</span>}
              </td>
            </tr>
          )
        })}
      </Table>
    </Panel>
  )
}

const HIDDEN: Readonly<Record<string, string>> = {
  Delayed: 'md-hide',
  Processing: 'md-hide',
  Discarded: 'md-hide',
  Relays: 'lg-hide',
}

function Table({
  head,
  right,
  children,
}: {
  head: readonly string[]
  right: readonly number[]
  children: ComponentChildren
}) {
  return (
    <div class="scroll">
      <table class="t" role="table">
        <thead>
          <tr>
            {head.map((word, at) => (
              <th key={word} scope="col" class={`${right.includes(at) ? 'num' : ''} ${HIDDEN[word] ?? ''}`}>
                {word === '' ? <span class="vh">Actions</span> : word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

function Waiting() {
  return (
    <>
      <PageHead title="Outbox">Reading sinks and events.</PageHead>
      <section class="panel">
        <SkeletonRows />
      </section>
    </>
  )
}

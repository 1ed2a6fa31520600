/** Sinks, and the relays that publish to them. */
import type { Finding, Overview, SinkStatus } from '../api.js'
import { Panel } from '../components/panel.js'
import { Speed } from '../components/speed.js'
import { Silhouette, type Shape } from '../components/silhouette.js'
import { Time } from '../components/time.js'
import { about, duration, plural } from '../logic/format.js'
import { isDown, lastError } from '../logic/sink-down.js'
import { BEHIND_MS } from '../logic/verdict.js'
import { href } from '../router.js'

export function Sinks({ overview }: { overview: Overview }) {
  const sinks = overview.sinks.filter(({ name, ready, delayed, dead }) => name !== '' || ready + delayed + dead > 0)
  if (sinks.length === 0) return null
  return (
    <Panel title="Outbox" sub={plural(sinks.filter(({ name }) => name !== '').length, 'sink')}>
      <div class="scroll">
        <table class="t" role="table">
          <thead>
            <tr>
              <th scope="col">Sink</th>
              <th scope="col">State</th>
              <th scope="col" class="md-hide">
                Relay
              </th>
              <th scope="col" class="num">
                Oldest waiting
              </th>
              <th scope="col" class="num">
                Waiting
              </th>
              <th scope="col" class="num">
                Published /s
              </th>
              <th scope="col" class="num">
                Dead
              </th>
              <th scope="col">Last error</th>
            </tr>
          </thead>
          <tbody>
            {sinks.map((sink) => (
              <Row key={sink.name} sink={sink} findings={overview.findings} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  )
}

function Row({ sink, findings }: { sink: SinkStatus; findings: readonly Finding[] }) {
  const { name, ready, delayed, dead, most, lagMs, failingSince, publishedPerSecond } = sink
  const error = lastError(sink, findings)
  const { shape, tone, word } = stateOf(sink, findings)
  const waiting = ready + delayed
  return (
    <tr>
      <th scope="row" class="c-half o1">
        <span class="name">
          <a class="row-link clip" title={name} href={href('outbox')}>
            {name === '' ? 'Wanted by no sink yet' : name}
          </a>
        </span>
      </th>
      <td class="c-half o1">
        <span class={`with-st f-${tone}`}>
          <Silhouette of={shape} />
          {word}
        </span>
        {failingSince !== undefined && (
          <span class="mut">
            since <Time at={failingSince} short />
          </span>
        )}
      </td>
      <td class="mut md-hide c-hide">{relayOf(sink)}</td>
      <td class="num c-half" data-l="Oldest waiting">
        <span class={lagMs === 0 ? 'nil' : lagMs > BEHIND_MS ? 'f-dead' : ''}>{duration(lagMs)}</span>
      </td>
      <td class="num" data-l="Waiting">
        <span class={waiting === 0 ? 'nil' : ''}>{about(waiting, { atLeast: ready >= most || delayed >= most })}</span>
      </td>
      <td class="num" data-l="Published /s">
        <Speed of={publishedPerSecond} />
      </td>
      <td class="num" data-l="Dead">
        {dead === 0 ? (
          <span class="nil">0</span>
        ) : (
          <span class="with-st f-dead">
            <Silhouette of="dead" />
            {about(dead, { atLeast: dead >= most })}
          </span>
        )}
      </td>
      <td class="err c-full" {...(error !== undefined && { 'data-l': 'Last error' })}>
        {error === undefined ? (
          <span class="nil">–</span>
        ) : (
          <bdi class="mono" title={error}>
            {error}
          </bdi>
        )}
      </td>
    </tr>
  )
}

interface State {
  readonly shape: Shape
  readonly tone: 'handled' | 'dead' | 'warn' | 'pending' | 'processing'
  readonly word: string
}

function stateOf(sink: SinkStatus, findings: readonly Finding[]): State {
  const { name, ready, processes, dead, lagMs } = sink
  if (name === '') return { shape: 'pending', tone: 'pending', word: 'Kept' }
  if (processes.length === 0) return { shape: 'paused', tone: 'warn', word: 'Not attached' }
  if (isDown(sink, findings)) return { shape: 'behind', tone: 'dead', word: 'Down' }
  if (dead > 0) return { shape: 'dead', tone: 'dead', word: 'Refuses some' }
  if (lagMs > BEHIND_MS) return { shape: 'behind', tone: 'dead', word: 'Behind' }
  if (ready > 0) return { shape: 'processing', tone: 'processing', word: 'Publishing' }
  return { shape: 'up', tone: 'handled', word: 'Up' }
}

function relayOf({ name, held, processes }: SinkStatus): string {
  if (name === '') return '–'
  const where = processes.length === 0 ? 'no process' : plural(processes.length, 'process', 'processes')
  return held ? `publishing, ${where}` : where
}

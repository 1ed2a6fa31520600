/** Overview: is anything wrong, where, since when, and what to do. */
import type { History, Overview } from '../api.js'
import { Banner } from '../components/banner.js'
import { Empty } from '../components/empty.js'
import { Kbd } from '../components/kbd.js'
import { SkeletonRows } from '../components/skeleton.js'
import type { Load } from '../load.js'
import { heardAt, overview, problem } from '../live.js'
import { isEmpty } from '../logic/verdict.js'
import { Charts } from '../overview/charts.js'
import { Consumers } from '../overview/consumers.js'
import { useFigures, useHistory } from '../overview/figures.js'
import { Health } from '../overview/health.js'
import { Sinks } from '../overview/sinks.js'
import { Verdict } from '../overview/verdict.js'
import { usePassed } from '../passed.js'

export function OverviewPage() {
  const slow = usePassed(200)
  const history = useHistory()
  const now = overview.value
  if (now) return <Known overview={now} history={history} />
  return (
    <div class={slow ? 'stack-v' : 'stack-v sk-wait'} role="status" aria-busy="true">
      <h1>{problem.value === undefined || heardAt.value ? 'Reading the box…' : 'The box cannot be read'}</h1>
      <div class="panel">
        <SkeletonRows rows={3} />
      </div>
      <div class="panel sk-charts" />
      <div class="panel">
        <SkeletonRows rows={8} />
      </div>
    </div>
  )
}

const KEYS = [
  ['/', 'search'],
  ['j k', 'move'],
  ['Enter', 'open'],
  ['p', 'pause updates'],
  ['t', 'theme'],
  ['?', 'all shortcuts'],
] as const

function Known({ overview: now, history }: { overview: Overview; history: Load<History> }) {
  const figures = useFigures(now, history.value.value)
  return (
    <>
      <Verdict overview={now} />
      {isEmpty(now) && <First />}
      {history.failure.value && (
        <Banner tone="warn" icon="plug">
          <b>What was before cannot be read.</b> The charts show what this tab has heard.
        </Banner>
      )}
      <Charts figures={figures} />
      <Consumers figures={figures} />
      <Sinks overview={now} />
      <Health overview={now} />
      <p class="foot">
        {KEYS.map(([keys, does]) => (
          <span key={keys}>
            <Kbd keys={keys} /> {does}
          </span>
        ))}
      </p>
    </>
  )
}

const EXAMPLE = `await box.receive({
  id: 'order-1',
  source: 'web',
  type: 'order.placed',
  data: { orderId: '1', sku: 'tea', quantity: 2 },
})`

function First() {
  return (
    <div class="panel">
      <Empty icon="messages" title="Send one">
        Whatever arrives is here within a second.
      </Empty>
      <pre class="code first-code">{EXAMPLE}</pre>
    </div>
  )
}

/** Quarantine: what cannot be judged safely, by reason; and what a person has to decide. */
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { api, type Quarantine } from '../api.js'
import { Decision } from '../components/quarantine/decision.js'
import { QuarantineList } from '../components/quarantine/list.js'
import { Empty } from '../components/empty.js'
import { Loaded } from '../components/loaded.js'
import { News } from '../components/news.js'
import { PageHead } from '../components/page-head.js'
import { SkeletonRows } from '../components/skeleton.js'
import { Time } from '../components/time.js'
import { overview } from '../live.js'
import { useLoad } from '../load.js'
import { about } from '../logic/format.js'
import { oldestOf, reasonCounts, reasonWords, type ReasonCount } from '../logic/quarantine-words.js'
import { useNews } from '../news.js'
import { box, href, query } from '../router.js'

export function QuarantinePage() {
  const of = box.value
  const load = useLoad(`quarantine ${of}`, (signal) => api.quarantine({ box: of }, { signal }))
  const first = useSignal<{ readonly reason: string; readonly n: string | undefined } | undefined>(undefined)
  const total = overview.value?.consumers.reduce((sum, { quarantined }) => sum + quarantined, 0)
  const news = useNews(load, total)
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {(quarantine) => {
        const counts = reasonCounts(quarantine)
        const chosen = counts.find(({ reason }) => reason === query.value['reason'])
        const shown = chosen ?? counts.find(({ count }) => count > 0)
        if (!shown) return <Nothing news={<News n={news} onShow={load.reload} />} />
        // Without a choice, the newest is open.
        const newest = first.value?.reason === shown.reason ? first.value.n : undefined
        const current = query.value['n'] ?? newest
        return (
          <>
            <Head quarantine={quarantine} counts={counts} news={<News n={news} onShow={load.reload} />} />
            <div class="split">
              <Reasons counts={counts} current={shown.reason} />
              <div class="stack-v">
                <QuarantineList
                  key={shown.reason}
                  of={shown}
                  read={quarantine}
                  current={current}
                  onFirst={(n) => (first.value = { reason: shown.reason, n })}
                />
                {current !== undefined && shown.count > 0 && (
                  <Decision key={current} n={current} reason={shown.reason} onDone={load.reload} />
                )}
              </div>
            </div>
          </>
        )
      }}
    </Loaded>
  )
}

interface HeadProps {
  quarantine: Quarantine
  counts: readonly ReasonCount[]
  news: ComponentChildren
}

function Head({ quarantine, counts, news }: HeadProps) {
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  const atLeast = counts.some((one) => one.atLeast)
  const oldest = oldestOf(quarantine)
  return (
    <PageHead
      title={`${about(total, { atLeast })} ${total === 1 ? 'message waits' : 'messages wait'} for a decision`}
      end={news}
    >
      Kept as they came
      {oldest !== undefined && (
        <>
          , the oldest since <Time at={oldest} short />
        </>
      )}
      . Conflicts and unknown effects first: only a person can settle them.
    </PageHead>
  )
}

function Reasons({ counts, current }: { counts: readonly ReasonCount[]; current: string }) {
  return (
    <nav class="panel reasons" aria-label="Reasons">
      <ul>
        {counts.map(({ reason, count, atLeast }) => (
          <li key={reason}>
            <a href={href('quarantine', { reason })} {...(reason === current && { 'aria-current': 'true' })}>
              <code>{reason}</code>
              <span class={`num ${count === 0 ? 'nil' : 'f-quarantined'}`}>{about(count, { atLeast })}</span>
              <small>{reasonWords(reason).words}</small>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

function Nothing({ news }: { news: ComponentChildren }) {
  return (
    <>
      <PageHead title="Nothing is in quarantine" end={news}>
        What cannot be judged safely is kept here as it came.
      </PageHead>
      <section class="panel">
        <Empty icon="check" title="All clear">
          No conflicts, no unknown effects, nothing that could not be read or that nobody takes.
        </Empty>
      </section>
    </>
  )
}

function Waiting() {
  return (
    <>
      <PageHead title="Quarantine">Reading what is in it.</PageHead>
      <section class="panel">
        <SkeletonRows />
      </section>
    </>
  )
}

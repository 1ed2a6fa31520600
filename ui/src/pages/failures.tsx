/** Failures: dead messages in groups of what they died of, the largest first. */
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { api, type FailureGroup, type Failures } from '../api.js'
import { Button } from '../components/button.js'
import { openBulk } from '../components/bulk/open.js'
import { Empty } from '../components/empty.js'
import { FailureRow } from '../components/failure-row.js'
import { Loaded } from '../components/loaded.js'
import { News } from '../components/news.js'
import { OnlyOf, onlyOf } from '../components/only-of.js'
import { PageHead } from '../components/page-head.js'
import { Segmented } from '../components/segmented.js'
import { SkeletonRows } from '../components/skeleton.js'
import { Time } from '../components/time.js'
import { inRow, useShortcuts } from '../keyboard.js'
import { overview } from '../live.js'
import { useLoad } from '../load.js'
import { failuresTitle, groupName, largest, RANGE_WORDS, RANGES, type Range } from '../logic/failure-words.js'
import { count } from '../logic/format.js'
import { now } from '../now.js'
import { useNews } from '../news.js'
import { box } from '../router.js'
import { toastError } from '../toasts.js'

export function FailuresPage() {
  const of = box.value
  const range = useSignal<Range>('all')
  const consumer = onlyOf()
  const asked = { box: of, consumer, minutes: RANGES[range.value] }
  const more = useSignal<readonly FailureGroup[]>([])
  const next = useSignal<string | undefined>(undefined)
  const load = useLoad(`failures ${of} ${range.value} ${consumer ?? ''}`, async (signal) => {
    const page = await api.failures(asked, { signal })
    more.value = []
    next.value = page.cursor
    return page
  })
  const showMore = async (): Promise<void> => {
    try {
      const page = await api.failures({ ...asked, cursor: next.value })
      more.value = [...more.value, ...page.groups]
      next.value = page.cursor
    } catch (error) {
      toastError('More groups could not be read', error)
    }
  }
  const dead = overview.value?.consumers
    .filter(({ name }) => consumer === undefined || name === consumer)
    .reduce((sum, one) => sum + one.dead, 0)
  const news = useNews(load, dead)
  useShortcuts([
    { keys: 'r', does: 'Retry…', run: () => press('.act-retry') },
    { keys: 'Shift+d', does: 'Discard…', run: () => press('.act-discard') },
  ])
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {(failures) => (
        <>
          <Head
            failures={failures}
            of={consumer}
            range={range.value}
            onRange={(to) => (range.value = to)}
            news={<News n={news} onShow={load.reload} />}
          />
          <OnlyOf />
          <Groups
            failures={{ ...failures, groups: withoutTwice([...failures.groups, ...more.value]) }}
            range={range.value}
            {...(next.value !== undefined && { onMore: () => void showMore() })}
          />
        </>
      )}
    </Loaded>
  )
}

const nameOf = ({ consumer, fingerprint }: FailureGroup): string => `${consumer} ${fingerprint}`

/** One that has shrunk between two pages is on both. */
function withoutTwice(groups: readonly FailureGroup[]): FailureGroup[] {
  return [...new Map(groups.map((group) => [nameOf(group), group])).values()]
}

/** Of the row that has the focus, or else of the first. */
function press(selector: string): void {
  const button = inRow<HTMLButtonElement>(selector) ?? document.querySelector<HTMLButtonElement>(`#main ${selector}`)
  button?.click()
}

function Waiting() {
  return (
    <>
      <PageHead title="Failures">Looking for dead messages.</PageHead>
      <section class="panel">
        <SkeletonRows rows={5} />
      </section>
    </>
  )
}

interface HeadProps {
  failures: Failures
  /** One consumer alone. */
  of: string | undefined
  range: Range
  onRange(to: Range): void
  news: ComponentChildren
}

function Head({ failures, of, range, onRange, news }: HeadProps) {
  if (failures.groups.length === 0 && range === 'all') {
    return (
      <PageHead title={of === undefined ? 'Nothing is dead' : `Nothing of ${of} is dead`} end={news}>
        Every message{of === undefined ? '' : ' of it'} ran, or will.
      </PageHead>
    )
  }
  return (
    <PageHead
      title={failuresTitle(failures)}
      end={
        <>
          {news}
          <Segmented<Range>
            label="Last seen within"
            value={range}
            choices={(Object.keys(RANGE_WORDS) as Range[]).map((value) => ({ value, text: RANGE_WORDS[value] }))}
            onChoose={onRange}
          />
        </>
      }
    >
      <Sentence failures={failures} />
    </PageHead>
  )
}

function Sentence({ failures }: { failures: Failures }) {
  const most = largest(failures, now.value)
  const seen = failures.complete ? '' : ` The newest ${count(failures.examined)} were looked at; there are more.`
  if (!most) return <>Messages that failed alike are together. Mend the cause, then retry them.{seen}</>
  const { group, share, last } = most
  return (
    <>
      One group is {share} of them: <b>{groupName(group)}</b> in {group.consumer}, since{' '}
      <Time at={group.firstAt} short />
      {last}.{seen}
    </>
  )
}

function Groups({ failures, range, onMore }: { failures: Failures; range: Range; onMore?(): void }) {
  const { groups, total } = failures
  const of = box.value
  if (groups.length === 0) {
    return (
      <section class="panel">
        {range === 'all' ? (
          <Empty icon="check" title="All clear">
            A message is dead once its attempts are used up, or a handler has rejected it. There is none.
          </Empty>
        ) : (
          <Empty icon="search" title={`Nothing died in the last ${RANGE_WORDS[range]}`}>
            Choose a longer time above to see what died before.
          </Empty>
        )}
      </section>
    )
  }
  return (
    <section class="panel" aria-label="Failure groups">
      <div class="group-cols" aria-hidden="true">
        <span>Error</span>
        <span>24 h</span>
        <span>Dead</span>
        <span>Last seen</span>
        <span />
      </div>
      {groups.map((group, at) => (
        <FailureRow
          key={nameOf(group)}
          group={group}
          isLargest={at === 0}
          atLeast={!failures.complete}
          onAct={(verb) => openBulk({ verb, box: of, q: group.query })}
        />
      ))}
      {onMore && (
        <div class="panel-body">
          <Button onClick={onMore}>Show more</Button>{' '}
          <span class="mut">
            {count(groups.length)} of {count(total)} groups
          </span>
        </div>
      )}
    </section>
  )
}

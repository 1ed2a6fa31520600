/** Keys: the lanes that are blocked, by which message, why, and what waits behind it; and the deepest of those that move. */
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { api, type BlockedKey } from '../api.js'
import { Button } from '../components/button.js'
import { openBulk } from '../components/bulk/open.js'
import { Deepest } from '../components/deepest.js'
import { Empty } from '../components/empty.js'
import { KeyRow } from '../components/key-row.js'
import { Loaded } from '../components/loaded.js'
import { News } from '../components/news.js'
import { OnlyOf, onlyOf } from '../components/only-of.js'
import { PageHead } from '../components/page-head.js'
import { Panel } from '../components/panel.js'
import { SkeletonRows } from '../components/skeleton.js'
import { inRow, useShortcuts } from '../keyboard.js'
import { overview } from '../live.js'
import { useLoad } from '../load.js'
import { about } from '../logic/format.js'
import { behindWords, keysSentence, keysTitle } from '../logic/key-words.js'
import { quote } from '../logic/query.js'
import { useNews } from '../news.js'
import { box } from '../router.js'
import { toastError } from '../toasts.js'

export function KeysPage() {
  const of = box.value
  const consumer = onlyOf()
  const more = useSignal<readonly BlockedKey[]>([])
  const next = useSignal<string | undefined>(undefined)
  const load = useLoad(`keys ${of} ${consumer ?? ''}`, async (signal) => {
    const page = await api.keys({ box: of, consumer }, { signal })
    more.value = []
    next.value = page.cursor
    return page
  })
  const news = useNews(load, blockedNow(consumer))
  const showMore = async (): Promise<void> => {
    try {
      const page = await api.keys({ box: of, consumer, cursor: next.value })
      more.value = [...more.value, ...page.keys]
      next.value = page.cursor
    } catch (error) {
      toastError('More keys could not be read', error)
    }
  }
  useShortcuts([
    { keys: 'r', does: 'Retry…', run: () => inRow<HTMLButtonElement>('.act-retry')?.click() },
    { keys: 'Shift+d', does: 'Discard…', run: () => inRow<HTMLButtonElement>('.act-discard')?.click() },
  ])
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {(page) => {
        const keys = [...page.keys, ...more.value]
        if (keys.length === 0 && next.value === undefined)
          return (
            <>
              <Nothing of={consumer} news={<News n={news} onShow={load.reload} />} />
              <Deepest of={page} />
            </>
          )
        const atLeast = next.value !== undefined
        return (
          <>
            <PageHead
              title={keysTitle(keys.length, atLeast)}
              end={
                <>
                  <News n={news} onShow={load.reload} />
                  <Button
                    kind="main"
                    icon="retry"
                    needs="retry"
                    onClick={() =>
                      openBulk({
                        verb: 'retry',
                        box: of,
                        q: consumer === undefined ? 'blocking:true' : `blocking:true consumer:${quote(consumer)}`,
                        where: 'in front',
                        hint: behindWords(keys),
                      })
                    }
                  >
                    Retry all {about(keys.length, { atLeast })} in front…
                  </Button>
                </>
              }
            >
              {keysSentence(keys)}
            </PageHead>
            <OnlyOf />
            <Panel title="Blocked" sub="most waiting first">
              <Table keys={keys} of={of} />
              {next.value !== undefined && (
                <div class="panel-body">
                  <Button onClick={() => void showMore()}>Show more</Button>
                </div>
              )}
              <div class="note">
                A discarded message lets its key go on without it, for good. With <code>onDead: 'skip'</code> keys of a
                consumer are never blocked.
              </div>
            </Panel>
            <Deepest of={page} />
          </>
        )
      }}
    </Loaded>
  )
}

/** How many are blocked now, of the consumer or of all. */
function blockedNow(consumer: string | undefined): number | undefined {
  const { blocked, consumers } = overview.value ?? {}
  if (consumer === undefined) return blocked?.keys
  return consumers && (consumers.find(({ name }) => name === consumer)?.blockedKeys ?? 0)
}

function Table({ keys, of }: { keys: readonly BlockedKey[]; of: string }) {
  return (
    <div class="scroll">
      <table class="t t-keys" role="table">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">In front</th>
            <th scope="col">Why</th>
            <th scope="col" class="num" aria-sort="descending">
              Waiting
            </th>
            <th scope="col" class="lg-hide">
              Lane
            </th>
            <th scope="col" class="num">
              Blocked
            </th>
            <th scope="col" class="num">
              <span class="vh">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((one) => (
            <KeyRow key={`${one.consumer} ${one.front.source} ${one.front.id}`} of={one} box={of} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Nothing({ of, news }: { of: string | undefined; news: ComponentChildren }) {
  return (
    <>
      <PageHead title={of === undefined ? 'No key is blocked' : `No key of ${of} is blocked`} end={news}>
        Messages of one key run one after the other, and all of them move.
      </PageHead>
      <OnlyOf />
      <section class="panel">
        <Empty icon="check" title="All clear">
          A key is blocked when the message in front of it is dead or in quarantine, and its consumer keeps the order.
        </Empty>
      </section>
    </>
  )
}

function Waiting() {
  return (
    <>
      <PageHead title="Keys">Looking for keys that are blocked.</PageHead>
      <section class="panel">
        <SkeletonRows />
      </section>
    </>
  )
}

/** Audit: who changed what, how many, and why; newest first, fifty at a time. */
import { useSignal } from '@preact/signals'
import { api, type AuditRow } from '../api.js'
import { Button } from '../components/button.js'
import { Empty } from '../components/empty.js'
import { Loaded } from '../components/loaded.js'
import { PageHead } from '../components/page-head.js'
import { Shown } from '../components/shown.js'
import { SkeletonRows } from '../components/skeleton.js'
import { Tag } from '../components/tag.js'
import { Time } from '../components/time.js'
import { useLoad } from '../load.js'
import { auditSentence, auditTitle, auditWords } from '../logic/audit-words.js'
import { visible } from '../logic/visible.js'
import { clock, now } from '../now.js'
import { minute } from '../logic/when.js'
import { useNews } from '../news.js'
import { box } from '../router.js'
import { toastError } from '../toasts.js'

const PAGE = 50

export function AuditPage() {
  const of = box.value
  const older = useSignal<readonly AuditRow[]>([])
  const next = useSignal<string | undefined>(undefined)
  const load = useLoad(`audit ${of}`, async (signal) => {
    const page = await api.audit({ box: of, limit: PAGE }, { signal })
    older.value = []
    next.value = page.cursor
    return page
  })
  // Of what others do, only what changes many messages is told by the stream: then it is read again.
  useNews(load, undefined)
  const showOlder = async (): Promise<void> => {
    try {
      const page = await api.audit({ box: of, limit: PAGE, cursor: next.value })
      older.value = [...older.value, ...page.records]
      next.value = page.cursor
    } catch (error) {
      toastError('Older records could not be read', error)
    }
  }
  return (
    <Loaded of={load} waiting={<Waiting />}>
      {({ records }) => {
        const all = [...records, ...older.value]
        const [last] = all
        return (
          <>
            <PageHead
              title={auditTitle(all.length, next.value !== undefined)}
              end={
                <Button icon="retry" onClick={load.reload}>
                  Read again
                </Button>
              }
            >
              {last
                ? auditSentence(last, minute(last.at, now.value, clock.value))
                : 'What people change here is written down: who, what, how many, and why.'}
            </PageHead>
            <section class="panel" aria-label="Audit">
              {all.length === 0 ? (
                <Empty icon="audit" title="No record yet">
                  Every retry, discard, answer and pause will stand here, with its reason.
                </Empty>
              ) : (
                <Table records={all} />
              )}
              {next.value !== undefined && (
                <div class="pager">
                  <span class="mut">Newest first</span>
                  <span class="end">
                    <Button small onClick={() => void showOlder()}>
                      Show older
                    </Button>
                  </span>
                </div>
              )}
            </section>
          </>
        )
      }}
    </Loaded>
  )
}

function Table({ records }: { records: readonly AuditRow[] }) {
  return (
    <div class="scroll">
      <table class="t" role="table">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">Action</th>
            <th scope="col" class="num">
              Messages
            </th>
            <th scope="col">Filter</th>
            <th scope="col" class="lg-hide">
              Why
            </th>
            <th scope="col">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {records.map((record, at) => (
            <Row key={`${record.at} ${at}`} of={record} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row({ of }: { of: AuditRow }) {
  const { who, whoHint, action, messages, filter, why, outcome } = auditWords(of)
  return (
    <tr>
      <td class="nowrap mut c-half">
        <span data-row tabIndex={-1}>
          <Time at={of.at} />
        </span>
      </td>
      <td class="nowrap c-half c-end" {...(whoHint !== undefined && { title: whoHint })}>
        <Shown text={who} />
      </td>
      <td class="c-half">
        <Tag>{action}</Tag>
      </td>
      <td class="num c-half c-end">{messages}</td>
      <td class="id c-full wrap-any" title={visible(filter)}>
        <Shown text={filter} />
      </td>
      <td class="mut c-3 lg-hide">
        <Shown text={why} />
      </td>
      <td class="nowrap c-end">{outcome}</td>
    </tr>
  )
}

function Waiting() {
  return (
    <>
      <PageHead title="Audit">Reading who changed what.</PageHead>
      <section class="panel">
        <SkeletonRows />
      </section>
    </>
  )
}

/** A job: its progress while it runs, with a rate that can be changed and a stop; then what happened, and what is left. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { announce } from '../../announce.js'
import type { Job } from '../../api.js'
import { link } from '../../live.js'
import { PACES, progressOf, type Progress } from '../../logic/bulk.js'
import {
  afterWords,
  auditLine,
  failedWords,
  goOnWords,
  jobTitle,
  paceWords,
  pulseWords,
} from '../../logic/bulk-words.js'
import { count } from '../../logic/format.js'
import { clockTime } from '../../logic/when.js'
import { clock } from '../../now.js'
import { search } from '../../router.js'
import { may } from '../../session.js'
import { toastError } from '../../toasts.js'
import { Button } from '../button.js'
import { Dialog } from '../dialog.js'
import { Environment } from '../environment.js'
import { Segmented } from '../segmented.js'
import { Silhouette, type Shape } from '../silhouette.js'
import { limits } from './limits.js'
import { Meter } from './meter.js'
import { ask as askJobs, closeBulk, openBulk, pace, stop, told, type BulkAsk } from './open.js'

const ASK_MS = 1_000

export function JobStep({ id, ask }: { id: string; ask: BulkAsk }) {
  const stopping = useSignal(false)
  const { box } = ask
  useEffect(() => {
    // The stream tells, unless there is none.
    const timer = setInterval(() => {
      if (link.value !== 'live') askJobs(box).catch(() => undefined)
    }, ASK_MS)
    return () => clearInterval(timer)
  }, [box])
  const job = told.value.get(id)
  const ended = job && job.state !== 'running' ? jobTitle(job) : undefined
  useEffect(() => {
    if (ended !== undefined) announce(ended)
  }, [ended])
  if (!job) return null
  const runs = job.state === 'running'
  const progress = progressOf(job)
  const act = async (what: string, change: Promise<void>): Promise<void> => {
    try {
      await change
    } catch (error) {
      toastError(what, error)
    }
  }
  const halt = (): void => {
    stopping.value = true
    void act('It was not stopped', stop(job)).finally(() => (stopping.value = false))
  }
  return (
    <Dialog
      title={jobTitle(job)}
      badge={<Environment />}
      onClose={closeBulk}
      foot={
        runs ? (
          <>
            <span class="note-inline">You may leave: it goes on.</span>
            <span class="end">
              <Button onClick={closeBulk}>Leave</Button>
              <Button kind="risk" needs={job.verb} blocked={stopping.value ? 'It stops.' : undefined} onClick={halt}>
                Stop here
              </Button>
            </span>
          </>
        ) : (
          <span class="end">
            <Button autofocus onClick={closeBulk}>
              Close
            </Button>
            {progress.untouched > 0 && (
              <Button kind={job.verb === 'retry' ? 'main' : 'risk'} needs={job.verb} onClick={() => openBulk(ask)}>
                {goOnWords(job)}
              </Button>
            )}
          </span>
        )
      }
    >
      {runs ? <Pulse job={job} /> : <p class="mut">{endWords(job)}</p>}
      <Meter job={job} />
      <Tally job={job} progress={progress} />
      {runs && may(job.verb) && (
        <Rate job={job} onPace={(perSecond) => void act('The rate was not changed', pace(job, perSecond))} />
      )}
      {runs && job.verb === 'retry' && (
        <ul class="bul">
          <li>
            <Silhouette of="paused" class="f-warn" />
            <span>Stops by itself if more than half of the last 50 fail again.</span>
          </li>
        </ul>
      )}
      {!runs && (
        <div class="field">
          <span class="lab">In the audit log</span>
          <code class="query">{auditLine(job)}</code>
        </div>
      )}
    </Dialog>
  )
}

function endWords(job: Job): string {
  const at = job.endedAt === undefined ? '' : `Ended at ${clockTime(job.endedAt, clock.value)}. `
  return `${at}${afterWords(job)}`
}

function Pulse({ job }: { job: Job }) {
  return (
    <div>
      <p class="big-n">
        {count(job.done)} <span class="mut">of {count(job.total)}</span>
      </p>
      <p class="mut">{pulseWords(job)}</p>
      {'resumed' in job && <p class="mut">Another process has carried it on.</p>}
    </div>
  )
}

function Rate({ job, onPace }: { job: Job; onPace(perSecond: number): void }) {
  const { mostPerSecond } = limits()
  const own = job.perSecond ?? mostPerSecond
  const paces = [...new Set([...PACES, own, mostPerSecond])].sort((one, other) => one - other)
  return (
    <div class="field">
      <span class="lab">How fast</span>
      <Segmented<number>
        label="How fast, while it runs"
        value={own}
        choices={paces.map((value) => ({ value, text: paceWords(value === mostPerSecond ? 'unlimited' : value) }))}
        onChoose={onPace}
      />
    </div>
  )
}

function Tally({ job, progress }: { job: Job; progress: Progress }) {
  const { handled, changed, skipped, untouched } = progress
  const runs = job.state === 'running'
  if (job.verb === 'discard') {
    return (
      <dl class="tally">
        <Row shape="discarded" word="Discarded" value={count(changed)} />
        {skipped > 0 && <Row shape="paused" word="Left alone" value={count(skipped)} />}
        <Row shape="pending" word={runs ? 'Not yet touched' : 'Not touched'} value={count(untouched)} />
      </dl>
    )
  }
  const failed = failedWords(job)
  return (
    <dl class="tally">
      <Row shape="handled" word="Handled" value={count(handled)} />
      <Row
        shape="dead"
        word="Failed again"
        value={
          job.failedAgain > 0 && job.query !== undefined ? (
            <a class="link" href={search(job.query)} onClick={closeBulk}>
              {failed}
            </a>
          ) : (
            failed
          )
        }
      />
      <Row shape="processing" word={runs ? 'To run' : 'Pending again'} value={count(changed)} />
      {skipped > 0 && <Row shape="paused" word="Left alone" value={count(skipped)} />}
      <Row shape="pending" word={runs ? 'Not yet touched' : 'Not touched'} value={count(untouched)} />
    </dl>
  )
}

function Row({ shape, word, value }: { shape: Shape; word: string; value: ComponentChildren }) {
  return (
    <>
      <dt class={`with-st f-${shape === 'paused' ? 'warn' : shape}`}>
        <Silhouette of={shape} />
        {word}
      </dt>
      <dd>{value}</dd>
    </>
  )
}

/** Jobs that run, for everybody who looks at the box: above the toasts, until they end or are closed. */
import { useEffect } from 'preact/hooks'
import { signal, useSignal } from '@preact/signals'
import { jobs, link } from '../../live.js'
import { jobTitle, toastWords } from '../../logic/bulk-words.js'
import { toast } from '../../toasts.js'
import { Button } from '../button.js'
import { Silhouette } from '../silhouette.js'
import { bulk, openJob, told } from './open.js'

/** Closed by the reader: those go on unseen. */
const closed = signal<ReadonlySet<string>>(new Set())

export function JobLines() {
  const seen = useSignal<ReadonlySet<string>>(new Set())
  const inDialog = bulk.value?.state.step === 'following' ? bulk.value.state.id : undefined
  const known = jobs.value.map((job) => told.value.get(job.id) ?? job)
  const running = known.filter(({ state, id }) => state === 'running' && id !== inDialog && !closed.value.has(id))
  useEffect(() => {
    // What was seen to run, and has ended out of sight, says so once.
    for (const job of known) {
      if (job.state === 'running' || !seen.value.has(job.id)) continue
      seen.value = new Set([...seen.value].filter((id) => id !== job.id))
      if (job.id === inDialog) continue
      const { detail } = toastWords(job)
      toast({ text: jobTitle(job), detail, action: { label: 'Open', run: () => openJob(job) } })
    }
    const now = known.filter(({ state }) => state === 'running').map(({ id }) => id)
    if (now.some((id) => !seen.value.has(id))) seen.value = new Set([...seen.value, ...now])
  }, [known.map(({ id, state }) => `${id} ${state}`).join('\n')])
  if (running.length === 0) return null
  return (
    <section class="toasts" aria-label="Running">
      {running.map((job) => {
        const { text, detail } = toastWords(job)
        return (
          <div class="toast" key={job.id}>
            <Silhouette of="processing" class="f-processing" />
            <span class="tx">
              {text}
              <small>{link.value === 'lost' ? 'nothing is heard of it now' : detail}</small>
            </span>
            <Button small onClick={() => openJob(job)}>
              Open
            </Button>
            <Button
              small
              kind="bare"
              icon="x"
              label="Close"
              onClick={() => (closed.value = new Set([...closed.value, job.id]))}
            />
          </div>
        )
      })}
    </section>
  )
}

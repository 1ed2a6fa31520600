/** Retry, discard or run one message again: counted first, confirmed, and then told what really happened. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { api, zone, type Counted, type Fate, type Job } from '../../api.js'
import type { Act } from '../../logic/act.js'
import { queryFor } from '../../logic/query.js'
import { box } from '../../router.js'
import { toast } from '../../toasts.js'
import { Button } from '../button.js'
import { Dialog } from '../dialog.js'
import { Environment } from '../environment.js'
import { wordsOf } from '../failed.js'
import { Why } from '../why.js'

interface Props {
  fate: Fate
  act: Act
  onClose(): void
  onDone(): void
}

const LOOK_MS = 250
const MOST_LOOKS = 80
const MEANWHILE = 'Nothing was changed: a worker claimed the message meanwhile, or somebody else has acted on it.'

export function ActDialog({ fate, act, onClose, onDone }: Props) {
  const counted = useSignal<Counted | undefined>(undefined)
  const reason = useSignal('')
  const problem = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const input = {
    box: box.value,
    q: `${fate.outbox ? 'box:outbox ' : ''}${queryFor(fate)} state:${fate.state}`,
    zone: zone(),
  }
  useEffect(() => {
    const ask = act.verb === 'retry' ? api.countRetry(input) : api.countDiscard(input)
    ask.then(
      (answer) => (counted.value = answer),
      (error: unknown) => (problem.value = wordsOf(error)),
    )
  }, [])
  const run = async (): Promise<void> => {
    busy.value = true
    try {
      const order = { box: box.value, confirmation: counted.value!.confirmation }
      const why = reason.value.trim()
      const started =
        act.verb === 'retry'
          ? await api.retry({ ...order, ...(why !== '' && { reason: why }) })
          : await api.discard({ ...order, reason: why })
      const ended = await endOf(started)
      if (ended.problem !== undefined) problem.value = ended.problem
      else {
        if (ended.done > 0 || ended.state === 'running') toast({ text: act.done, detail: `${fate.type} ${fate.id}` })
        else toast({ text: MEANWHILE, bad: true })
        onDone()
      }
    } catch (error) {
      problem.value = wordsOf(error)
    }
    busy.value = false
  }
  const count = counted.value?.count
  const blocked =
    count === undefined ? 'It is being counted.'
    : count === 0 ? MEANWHILE
    : busy.value ? 'It is on its way.'
    : act.verb === 'discard' && reason.value.trim() === '' ? 'Say why, for the audit log.'
    : undefined // prettier-ignore
  return (
    <Dialog
      title={act.title}
      badge={<Environment />}
      onClose={onClose}
      foot={
        <div class="end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={act.verb === 'discard' ? 'risk' : 'main'} onClick={() => void run()} blocked={blocked}>
            {count === undefined && problem.value === undefined ? 'Counting…' : act.confirm}
          </Button>
        </div>
      }
    >
      <p class="mut">{act.sentences.join(' ')}</p>
      {count === 0 && <p class="f-warn">{MEANWHILE}</p>}
      {count !== undefined && count > 1 && (
        <p class="f-warn">{`There are ${count} bodies under this id for this consumer: all of them are taken.`}</p>
      )}
      <Why
        value={reason.value}
        required={act.verb === 'discard'}
        onInput={(words) => (reason.value = words)}
        onEnter={() => blocked === undefined && void run()}
      />
      {problem.value !== undefined && (
        <p class="f-dead" role="alert">
          {problem.value}
        </p>
      )}
    </Dialog>
  )
}

/** One message is done in a moment; what takes longer goes on without being watched. */
async function endOf(job: Job): Promise<Job> {
  let at = job
  for (let look = 0; at.state === 'running' && look < MOST_LOOKS; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    const { jobs } = await api.jobs({ box: job.box })
    at = jobs.find(({ id }) => id === job.id) ?? at
  }
  return at
}

/** Answer: records what a person found out about a call whose outcome nobody recorded. */
import { api, type Fate } from './api.js'
import { toast } from './toasts.js'

interface Answer {
  readonly box: string
  readonly fate: Pick<Fate, 'consumer' | 'source' | 'id'>
  readonly effect: string
  readonly happened: boolean
  /** JSON, or nothing. */
  readonly result: string
  readonly reason: string
}

export async function recordAnswer({ box, fate, effect, happened, ...said }: Answer): Promise<void> {
  const { consumer, source, id } = fate
  const result = said.result.trim()
  const reason = said.reason.trim()
  await api.answer({
    ...{ box, consumer, source, id, effect, happened },
    ...(happened && result !== '' && { result }),
    ...(reason !== '' && { reason }),
  })
  toast({ text: `Recorded: ${effect} ${happened ? 'happened' : 'did not happen'}`, detail: `${consumer} goes on.` })
}

/** Tells of messages that a worker of this process takes over: their last worker died, or lost its lease. */
import { aboutMessage } from '../about.js'
import { tell, type Runtime } from '../runtime.js'
import type { Claim } from './held.js'

export function tellTakeover(runtime: Runtime, consumer: string, { queue }: Claim): void {
  const suspects = queue.filter(({ suspect }) => suspect)
  if (suspects.length === 0) return
  runtime.metrics.consumer(consumer).tookOver(suspects.length)
  const about = { ...aboutMessage(suspects[0]!.message), consumer, messages: suspects.length }
  runtime.log.warn(about, 'messages are taken over from a worker that died or lost its lease')
  const messages = suspects.map(({ message: { id, source, type } }) => ({ id, source, type }))
  tell(runtime, 'takenOver', { consumer, messages })
}

/** Why nothing fits what was asked for: a name that is misspelt is an error, a message in another state is said. */
import type { Filter } from '../../admin/index.js'
import { hintAt } from '../../nearest.js'
import type { AnyBox } from '../connect/connect.js'
import { failed, misused } from '../exit.js'

/** Answers with what to say; throws for a name that there is not. A consumer is looked at by the admin itself. */
export async function whyNone(box: AnyBox, chosen: Filter): Promise<string[]> {
  const { box: side, consumer, id } = chosen
  if (side === 'outbox' && consumer) await checkSink(box, consumer)
  if (id === undefined) return []
  const ids = typeof id === 'string' ? [id] : id
  const { entries } = await box.admin.messages({ id, ...(side && { box: side }) }, { limit: 1_000 })
  const thing = side === 'outbox' ? 'event' : 'message'
  const missing = ids.filter((one) => !entries.some(({ message }) => message.id === one))
  if (missing.length === ids.length) {
    throw failed(
      `there is no ${thing} ${ids.join(', ')}`,
      `oncebox ${thing === 'event' ? 'outbox' : 'messages'} ls lists those there are`,
    )
  }
  return [
    ...missing.map((one) => `there is no ${thing} ${one}`),
    ...entries.map((one) => `${thing} ${one.message.id}${ofWhom(one.consumer)} is ${one.state}`),
  ]
}

function ofWhom(consumer: string): string {
  return consumer === '' ? '' : ` of ${consumer}`
}

/** Events may wait for one that is not declared any more: they are found, and nobody comes here. */
async function checkSink(box: AnyBox, sink: string): Promise<void> {
  const names = (await box.admin.sinks()).map(({ name }) => name)
  if (names.includes(sink)) return
  throw misused(
    `there is no sink ${JSON.stringify(sink)}`,
    hintAt(sink, names, 'oncebox sink ls lists those there are'),
  )
}

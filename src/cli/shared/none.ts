/** What a bulk verb leaves out of what was asked for: a name that is misspelt is an error, a message in another state is said. */
import type { Filter } from '../../admin/index.js'
import type { Entry } from '../../hooks.js'
import type { MessageMap } from '../../message.js'
import { hintAt } from '../../nearest.js'
import type { AnyBox } from '../connect/connect.js'
import { failed, misused } from '../exit.js'

/** Throws for a sink that there is not. A consumer is looked at by the admin itself. */
export async function checkNames(box: AnyBox, { box: side, consumer }: Filter): Promise<void> {
  if (side === 'outbox' && consumer) await checkSink(box, consumer)
}

/** Of ids that were given: throws for those that there are not, and answers with what to say of those in another state. */
export async function leftOut(box: AnyBox, chosen: Filter): Promise<string[]> {
  const { box: side, id } = chosen
  if (id === undefined) return []
  const found = new Set((await allOf(box, chosen)).map(({ message }) => message.id))
  const left = (typeof id === 'string' ? [id] : id).filter((one) => !found.has(one))
  if (left.length === 0) return []
  const entries = await allOf(box, { id: left, ...(side && { box: side }) })
  const thing = side === 'outbox' ? 'event' : 'message'
  const missing = left.filter((one) => !entries.some(({ message }) => message.id === one))
  if (missing.length > 0) {
    throw failed(
      `there is no ${thing} ${missing.join(', ')}`,
      `oncebox ${thing === 'event' ? 'outbox' : 'messages'} ls lists those there are`,
    )
  }
  return entries.map((one) => `${thing} ${one.message.id}${ofWhom(one.consumer)} is ${one.state}`)
}

/** An id may be of several consumers and producers. */
async function allOf(box: AnyBox, filter: Filter): Promise<Entry<MessageMap>[]> {
  const all: Entry<MessageMap>[] = []
  let cursor: string | undefined
  do {
    const page = await box.admin.messages(filter, { limit: 1_000, ...(cursor !== undefined && { cursor }) })
    all.push(...page.entries)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
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

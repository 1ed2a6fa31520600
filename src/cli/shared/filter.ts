/** Which messages: the criteria that lists and bulk verbs share. */
import type { Filter } from '../../admin/index.js'
import { flag, json, moment, text, texts, type OptionsOf } from '../option.js'

export const CRITERIA = {
  type: texts('Of this type.', 'type'),
  key: text('With this key.', 'key'),
  source: text('Of this producer.', 'name'),
  error: text('Whose last error has this in its message.', 'text'),
  before: moment('Received before this time: 2026-03-01T12:00:00Z, or 2h for two hours ago.'),
  after: moment('Received at this time or after it.'),
  data: json('Whose data contains this JSON.'),
}

export const OF_CONSUMER = { consumer: text('Of this consumer.', 'name') }
export const OF_FAILURE = {
  fingerprint: texts('Whose failure has this fingerprint, as the dashboard shows it.', 'fingerprint'),
  blocking: flag('Only what blocks its key.'),
}
export const TO_SINK = { sink: text('To be published to this sink.', 'name') }

type Criteria = Partial<OptionsOf<typeof CRITERIA & typeof OF_CONSUMER & typeof OF_FAILURE & typeof TO_SINK>>

/** Without those that were not given: a filter takes no undefined. */
export function filterOf(options: Criteria, ids: readonly string[] = []): Filter {
  const { consumer, sink, type, key, source, error, fingerprint, before, after, data } = options
  const blocking = options.blocking || undefined
  const criteria = { consumer: consumer ?? sink, type, key, source, error, fingerprint, blocking, before, after, data }
  const given = Object.entries(criteria).filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(given), ...(ids.length > 0 && { id: ids }) }
}

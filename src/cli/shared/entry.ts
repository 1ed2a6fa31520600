/**
 * A message, as lists and `messages show` print it. Data, headers, results and what may quote them only where they were asked
 * for.
 */
import type { Entry } from '../../hooks.js'
import type { Failure, MessageMap, State } from '../../message.js'
import { showTime } from '../output/duration.js'
import type { Column } from '../output/table.js'
import { paint, type Style, type Text } from '../output/text.js'
import { anything, array, integer, number, object, oneOf, record, string, time, type Shape } from '../shape.js'

export type AnyEntry = Entry<MessageMap>

const FAILURE: Shape = object({ name: string, message: string, 'code?': string, 'stack?': string, 'cause?': anything })

const FIELDS = {
  ...{ id: string, source: string, type: string, 'key?': string, 'subject?': string, 'time?': time },
  ...{ state: oneOf('pending', 'processing', 'handled', 'dead', 'quarantined', 'discarded') },
  ...{ attempt: integer, receivedAt: time, 'handledAt?': time, correlationId: string, 'causationId?': string },
  ...{ 'reason?': string, 'error?': FAILURE },
}

export const ENTRY: Shape = object({ consumer: string, ...FIELDS })
export const EVENT: Shape = object({ sink: string, ...FIELDS })
export const WHOLE_ENTRY: Shape = object({
  consumer: string,
  ...FIELDS,
  'attempts?': array(object({ attempt: integer, at: time, 'ms?': number, 'worker?': string, error: FAILURE })),
  ...{ 'detail?': string, 'data?': anything, 'headers?': record(string), 'result?': anything, 'bytes?': string },
})

/** Who it is for: `consumer` in the inbox, `sink` in the outbox. */
export type For = 'consumer' | 'sink'

export function entryDocument(entry: AnyEntry, whom: For = 'consumer'): Record<string, unknown> {
  const { message, consumer, state, handledAt, reason, error } = entry
  const { id, source, type, key, subject, time: at, attempt, receivedAt, correlationId, causationId } = message
  return {
    [whom]: consumer,
    ...{ id, source, type, key, subject, time: at, state, attempt, receivedAt, handledAt },
    ...{ correlationId, causationId, reason, error: error && withoutStack(error) },
  }
}

/** A stack is for who reads one message. */
export function withoutStack({ stack: _, cause, ...rest }: Failure): Failure {
  return { ...rest, ...(cause !== undefined && { cause: withoutStack(cause) }) }
}

const COLOURS: Partial<Record<State, Style>> = {
  dead: 'red',
  quarantined: 'yellow',
  handled: 'green',
  discarded: 'dim',
}

export function stateText(state: State): Text {
  const style = COLOURS[state]
  return style === undefined ? state : paint(style, state)
}

export function entryColumns(whom: For = 'consumer'): Column[] {
  return [
    { title: 'RECEIVED' },
    { title: 'STATE' },
    { title: whom.toUpperCase(), least: 8 },
    { title: 'TYPE', least: 8 },
    { title: 'ID', least: 8 },
    { title: 'KEY', least: 3 },
    { title: 'ATTEMPT', right: true },
    { title: 'WHY', least: 10 },
  ]
}

export function entryRow({ message, consumer, state, reason, error }: AnyEntry): Text[] {
  const { id, type, key, attempt, receivedAt } = message
  const why = [reason, error && `${error.name}: ${error.message}`].filter(Boolean).join(': ')
  return [showTime(receivedAt), stateText(state), consumer, type, id, key ?? '', attempt, why]
}

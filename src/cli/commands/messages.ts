/** `oncebox messages`: look at messages, and run handled ones again. */
import { command } from '../command.js'
import { failed } from '../exit.js'
import { argument, choice, flag, restArguments, text } from '../option.js'
import { showTime } from '../output/duration.js'
import type { Output } from '../output/output.js'
import { paint, type Text } from '../output/text.js'
import type { State } from '../../message.js'
import { BULK, BULK_RESULT, changeMany } from '../shared/bulk.js'
import { ENTRY, WHOLE_ENTRY, entryDocument, stateText, withoutStack, type AnyEntry } from '../shared/entry.js'
import { CRITERIA, filterOf, OF_CONSUMER, OF_FAILURE } from '../shared/filter.js'
import { listMessages } from '../shared/list.js'
import { PAGE } from '../shared/paging.js'

const STATES = ['pending', 'processing', 'handled', 'dead', 'quarantined', 'discarded'] as const satisfies State[]

export const messagesLs = command({
  noun: 'messages',
  verb: 'ls',
  summary: 'List messages, newest first.',
  example: 'oncebox messages ls --consumer billing --state pending --limit 20',
  options: { state: choice('In this state.', STATES), ...OF_CONSUMER, ...CRITERIA, ...OF_FAILURE, ...PAGE },
  arguments: { ids: restArguments('Ids of messages.') },
  connects: true,
  raw: true,
  output: ENTRY,
  async run(context) {
    const { options, args } = context
    const filter = { ...filterOf(options, args.ids), ...(options.state !== undefined && { state: options.state }) }
    await listMessages(context, filter, 'messages')
  },
})

export const messagesShow = command({
  noun: 'messages',
  verb: 'show',
  summary: 'Show everything known of a message: its state for each consumer, and its failed attempts.',
  details: [
    'Its data, headers and results are shown with --data alone: they may be nobody’s business. So is the detail of why it is in quarantine, in which a schema may quote its data.',
  ],
  example: 'oncebox messages show order-4711 --data',
  options: {
    ...OF_CONSUMER,
    source: text('Of this producer.', 'name'),
    data: flag('Show data, headers, result and detail, too.'),
    stack: flag('Show the stacks of errors, too.'),
  },
  arguments: { id: argument('The id of the message.') },
  connects: true,
  raw: true,
  output: WHOLE_ENTRY,
  async run({ options, args, out, connect }) {
    const { box } = await connect()
    const { consumer, source } = options
    const at = { id: args.id, ...(source !== undefined && { source }), ...(consumer !== undefined && { consumer }) }
    const entries = await box.admin.message(at)
    if (entries.length === 0)
      throw failed(`there is no message "${args.id}"`, 'oncebox messages ls lists those there are')
    for (const [index, entry] of entries.entries()) {
      const shown = { ...wholeDocument(entry, options), ...(options.data && contentOf(entry)) }
      if (out.json) out.document(shown)
      else {
        if (index > 0) out.line('')
        print(out, entry, shown)
      }
    }
  },
})

export const messagesReplay = command({
  noun: 'messages',
  verb: 'replay',
  summary: 'Run handled messages again, oldest first.',
  details: ['Their handlers run a second time. Effects on record are not called again: their outcomes are replayed.'],
  example: "oncebox messages replay --consumer billing --after 2h --rps 50 --reason 'wrong tariff'",
  options: { ...OF_CONSUMER, ...CRITERIA, ...BULK },
  arguments: { ids: restArguments('Ids of messages.') },
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = filterOf(context.options, context.args.ids)
    const words = { verb: 'retry', ask: 'replay', done: 'pending again', thing: 'handled message' } as const
    return changeMany(context, { ...words, criteria, of: { state: 'handled' } })
  },
})

interface Wanted {
  readonly stack: boolean
}

function wholeDocument(entry: AnyEntry, { stack }: Wanted): Record<string, unknown> {
  const { error, attempts } = entry
  return {
    ...entryDocument(entry),
    error: error && (stack ? error : withoutStack(error)),
    attempts: attempts?.map((one) => ({ ...one, error: stack ? one.error : withoutStack(one.error) })),
  }
}

function contentOf({ message, result, bytes, detail }: AnyEntry): Record<string, unknown> {
  const { data, headers } = message
  return { detail, data, headers, result, ...(bytes !== undefined && { bytes: Buffer.from(bytes).toString('base64') }) }
}

function print(out: Output, { state, detail, error, attempts = [] }: AnyEntry, shown: Record<string, unknown>): void {
  const { error: _, attempts: __, data, headers, result, ...rest } = shown
  for (const [name, value] of Object.entries(rest)) {
    if (value !== undefined) field(out, name, name === 'state' ? stateText(state) : textOf(value))
  }
  if (detail !== undefined && shown['detail'] === undefined) field(out, 'detail', paint('dim', 'shown with --data'))
  if (error) field(out, 'error', paint('red', `${error.name}: ${error.message}`))
  for (const { attempt, at, error: one } of attempts) {
    field(out, `attempt ${attempt}`, [`${showTime(at)}  `, paint('red', `${one.name}: ${one.message}`)])
  }
  const stack = (shown['error'] as { stack?: string } | undefined)?.stack
  if (stack !== undefined) block(out, 'stack', stack)
  for (const [name, value] of Object.entries({ headers, data, result })) {
    if (value !== undefined) block(out, name, JSON.stringify(value, undefined, 2))
  }
}

function textOf(value: unknown): string {
  return value instanceof Date ? showTime(value) : typeof value === 'string' ? value : JSON.stringify(value)
}

function field(out: Output, name: string, text: Text): void {
  out.line(paint('dim', name.padEnd(14)), ' ', text)
}

/** Its line breaks are kept, everything else that a terminal obeys is not. */
function block(out: Output, name: string, text: string): void {
  out.line(paint('dim', name))
  for (const line of text.split('\n')) out.line('  ', line)
}

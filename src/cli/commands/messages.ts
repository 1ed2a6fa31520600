/** `oncebox messages`: look at messages, and run handled ones again. */
import { command } from '../command.js'
import { failed } from '../exit.js'
import { argument, choice, flag, restArguments, text } from '../option.js'
import type { State } from '../../message.js'
import { BULK, BULK_RESULT, changeMany } from '../shared/bulk.js'
import { ENTRY, WHOLE_ENTRY } from '../shared/entry.js'
import { CRITERIA, filterOf, OF_CONSUMER, OF_FAILURE } from '../shared/filter.js'
import { listMessages } from '../shared/list.js'
import { PAGE } from '../shared/paging.js'
import { showWhole } from '../shared/show.js'

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
    showWhole(out, entries, options)
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

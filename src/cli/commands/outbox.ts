/** `oncebox outbox`: events on their way out. */
import { command } from '../command.js'
import { choice, restArguments } from '../option.js'
import { BULK, BULK_RESULT, changeMany } from '../shared/bulk.js'
import { EVENT } from '../shared/entry.js'
import { CRITERIA, filterOf, TO_SINK } from '../shared/filter.js'
import { listMessages } from '../shared/list.js'
import { PAGE } from '../shared/paging.js'

const IDS = { ids: restArguments('Ids of events.') }

export const outboxLs = command({
  noun: 'outbox',
  verb: 'ls',
  summary: 'List events of the outbox, newest first: one line for each sink.',
  example: 'oncebox outbox ls --state dead --sink events',
  options: {
    state: choice('In this state; handled means published.', ['pending', 'handled', 'dead', 'discarded']),
    ...TO_SINK,
    ...CRITERIA,
    ...PAGE,
  },
  arguments: IDS,
  connects: true,
  raw: true,
  output: EVENT,
  async run(context) {
    const { options, args } = context
    const state = options.state !== undefined && { state: options.state }
    await listMessages(context, { ...filterOf(options, args.ids), ...state, box: 'outbox' }, 'events in the outbox')
  },
})

export const outboxRetry = command({
  noun: 'outbox',
  verb: 'retry',
  summary: 'Publish dead and discarded events again.',
  example: "oncebox outbox retry --sink events --rps 100 --reason 'the broker is back'",
  options: { ...TO_SINK, ...CRITERIA, ...BULK },
  arguments: IDS,
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = filterOf(context.options, context.args.ids)
    const words = { verb: 'retry', ask: 'publish again', done: 'to be published again', thing: 'event' } as const
    return changeMany(context, { ...words, criteria, of: { box: 'outbox', state: ['dead', 'discarded'] } })
  },
})

export const outboxDiscard = command({
  noun: 'outbox',
  verb: 'discard',
  summary: 'Give dead events up: they are not published.',
  example: "oncebox outbox discard --type stock.reserved --reason 'nobody reads it'",
  options: {
    state: choice('In this state (default: dead).', ['dead', 'pending']),
    ...TO_SINK,
    ...CRITERIA,
    ...BULK,
  },
  arguments: IDS,
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = filterOf(context.options, context.args.ids)
    const { state = 'dead' } = context.options
    const words = { verb: 'discard', ask: 'discard', done: 'discarded', thing: `${state} event` } as const
    return changeMany(context, { ...words, criteria, of: { box: 'outbox', state } })
  },
})

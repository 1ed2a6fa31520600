/** `oncebox dead`: messages that failed for good. */
import { command } from '../command.js'
import { restArguments } from '../option.js'
import { BULK, BULK_RESULT, changeMany } from '../shared/bulk.js'
import { ENTRY } from '../shared/entry.js'
import { CRITERIA, filterOf, OF_CONSUMER, OF_FAILURE } from '../shared/filter.js'
import { listMessages } from '../shared/list.js'
import { PAGE } from '../shared/paging.js'

const IDS = { ids: restArguments('Ids of messages.') }

export const deadLs = command({
  noun: 'dead',
  verb: 'ls',
  summary: 'List dead messages, newest first.',
  example: 'oncebox dead ls --consumer billing --error ECONNREFUSED',
  options: { ...OF_CONSUMER, ...CRITERIA, ...OF_FAILURE, ...PAGE },
  arguments: IDS,
  connects: true,
  raw: true,
  output: ENTRY,
  async run(context) {
    const filter = { ...filterOf(context.options, context.args.ids), state: 'dead' as const }
    await listMessages(context, filter, 'dead messages')
  },
})

export const deadRetry = command({
  noun: 'dead',
  verb: 'retry',
  summary: 'Make dead messages pending again, oldest first, with all their attempts before them.',
  example: "oncebox dead retry --consumer billing --rps 50 --reason 'the provider is back'",
  options: { ...OF_CONSUMER, ...CRITERIA, ...OF_FAILURE, ...BULK },
  arguments: IDS,
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = filterOf(context.options, context.args.ids)
    const words = { verb: 'retry', ask: 'retry', done: 'retried', thing: 'dead message' } as const
    return changeMany(context, { ...words, criteria, of: { state: 'dead' } })
  },
})

export const deadDiscard = command({
  noun: 'dead',
  verb: 'discard',
  summary: 'Give dead messages up. They can be retried until retention takes them.',
  example: "oncebox dead discard order-4711 --reason 'a test order'",
  options: { ...OF_CONSUMER, ...CRITERIA, ...OF_FAILURE, ...BULK },
  arguments: IDS,
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = filterOf(context.options, context.args.ids)
    const words = { verb: 'discard', ask: 'discard', done: 'discarded', thing: 'dead message' } as const
    return changeMany(context, { ...words, criteria, of: { state: 'dead' } })
  },
})

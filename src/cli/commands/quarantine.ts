/** `oncebox quarantine`: messages that could not be judged or handled safely. */
import type { Filter } from '../../admin/index.js'
import { QUARANTINE_REASONS } from '../../message.js'
import { command } from '../command.js'
import { choice, flag, restArguments } from '../option.js'
import { BULK, BULK_RESULT, changeMany } from '../shared/bulk.js'
import { WHOLE_ENTRY } from '../shared/entry.js'
import { CRITERIA, filterOf, OF_CONSUMER } from '../shared/filter.js'
import { listMessages } from '../shared/list.js'
import { PAGE } from '../shared/paging.js'

const IDS = { ids: restArguments('Ids of messages.') }
const WHY = { why: choice('In quarantine for this.', QUARANTINE_REASONS) }

/** Their handlers would run into the same unknown effect. */
const UNANSWERED = {
  of: { reason: 'effect-unknown' },
  words:
    'what is in quarantine as effect-unknown will park again at once, unless you say first whether its effect happened: oncebox effects answer <effect> --consumer <name> --id <id> --happened, or --did-not-happen',
} as const

type Chosen = Parameters<typeof filterOf>[0] & { readonly why: Filter['reason'] }

function criteriaOf(options: Chosen, ids: readonly string[]): Filter {
  return { ...filterOf(options, ids), ...(options.why !== undefined && { reason: options.why }) }
}

export const quarantineLs = command({
  noun: 'quarantine',
  verb: 'ls',
  summary: 'List what is in quarantine, newest first.',
  example: 'oncebox quarantine ls --why invalid --type order.placed',
  details: [
    'What has no id can be looked at with --whole alone. So can the detail of why a message is here, in which a schema may quote its data.',
  ],
  options: {
    ...WHY,
    ...OF_CONSUMER,
    ...CRITERIA,
    ...PAGE,
    whole: flag('Show everything of each, with its data, headers and detail.'),
  },
  arguments: IDS,
  connects: true,
  raw: true,
  output: WHOLE_ENTRY,
  async run(context) {
    const filter = { ...criteriaOf(context.options, context.args.ids), state: 'quarantined' as const }
    await listMessages(context, filter, 'messages in quarantine')
  },
})

export const quarantineRelease = command({
  noun: 'quarantine',
  verb: 'release',
  summary: 'Let messages out of quarantine, through the front door: what is refused again stays.',
  example: "oncebox quarantine release --why unrouted --reason 'the consumer is deployed'",
  options: { ...WHY, ...OF_CONSUMER, ...CRITERIA, ...BULK },
  arguments: IDS,
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = criteriaOf(context.options, context.args.ids)
    const words = { verb: 'retry', ask: 'release', done: 'released', thing: 'quarantined message' } as const
    return changeMany(context, { ...words, criteria, of: { state: 'quarantined' }, beware: UNANSWERED })
  },
})

export const quarantineDiscard = command({
  noun: 'quarantine',
  verb: 'discard',
  summary: 'Give messages in quarantine up. They can be released until retention takes them.',
  example: "oncebox quarantine discard --why undecodable --before 7d --reason 'garbage'",
  options: { ...WHY, ...OF_CONSUMER, ...CRITERIA, ...BULK },
  arguments: IDS,
  connects: true,
  output: BULK_RESULT,
  run(context) {
    const criteria = criteriaOf(context.options, context.args.ids)
    const words = { verb: 'discard', ask: 'discard', done: 'discarded', thing: 'quarantined message' } as const
    return changeMany(context, { ...words, criteria, of: { state: 'quarantined' } })
  },
})

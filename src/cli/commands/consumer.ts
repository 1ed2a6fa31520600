/** `oncebox consumer`: who handles messages. */
import { OnceboxError } from '../../errors.js'
import { hintAt } from '../../nearest.js'
import { command, type Context } from '../command.js'
import { confirm } from '../confirm.js'
import type { AnyBox } from '../connect/connect.js'
import { failed } from '../exit.js'
import { argument, flag, type OptionsOf } from '../option.js'
import { counted, showTime } from '../output/duration.js'
import { paint } from '../output/text.js'
import { array, boolean, integer, number, object, oneOf, string, time } from '../shape.js'
import { SIGNED, signedBy } from '../shared/signed.js'

export const consumerLs = command({
  noun: 'consumer',
  verb: 'ls',
  summary: 'List the consumers there are, and the processes that run them.',
  example: 'oncebox consumer ls',
  connects: true,
  raw: true,
  output: object({
    ...{ name: string, types: array(string), order: oneOf('none', 'key'), identity: boolean, retainMs: number },
    ...{ paused: boolean, processes: array(string), 'seenAt?': time },
  }),
  async run({ out, connect }) {
    const { box } = await connect()
    const consumers = await box.admin.consumers()
    if (out.json) {
      for (const { local: _, ...consumer } of consumers) out.document(consumer)
      return
    }
    if (consumers.length === 0) return out.note('no consumer is registered yet: box.start() does it')
    const columns = [
      ...[{ title: 'CONSUMER', least: 10 }, { title: 'TYPES', least: 10 }, { title: 'STATE' }],
      ...[{ title: 'RUN BY', least: 10 }, { title: 'SEEN' }],
    ]
    const rows = consumers.map(({ name, types, paused, processes, seenAt }) => [
      ...[name, types.join(' '), paused ? paint('yellow', 'paused') : ''],
      ...[processes.length > 0 ? processes.join(' ') : paint('dim', 'nobody'), seenAt ? showTime(seenAt) : 'never'],
    ])
    out.table(columns, rows)
  },
})

/** Can be taken back, so nobody is asked; `--yes` is taken as by all commands that change something. */
const PAUSING = { yes: flag('Changes nothing here: nobody is asked.'), ...SIGNED }

export const consumerPause = command({
  noun: 'consumer',
  verb: 'pause',
  summary: 'Let no process claim messages of a consumer. They are still received.',
  example: "oncebox consumer pause billing --reason 'the provider is down'",
  options: PAUSING,
  arguments: { name: argument('The consumer.') },
  connects: true,
  output: object({ consumer: string, paused: boolean }),
  run: (context) => setPaused(context, 'pause'),
})

export const consumerResume = command({
  noun: 'consumer',
  verb: 'resume',
  summary: 'Let processes claim messages of a consumer again.',
  example: 'oncebox consumer resume billing',
  options: PAUSING,
  arguments: { name: argument('The consumer.') },
  connects: true,
  output: object({ consumer: string, paused: boolean }),
  run: (context) => setPaused(context, 'resume'),
})

type PauseContext = Context<OptionsOf<typeof PAUSING>, { readonly name: string }>

async function setPaused({ out, options, args, connect }: PauseContext, verb: 'pause' | 'resume'): Promise<void> {
  const { box } = await connect()
  await box.admin[verb](args.name, signedBy(options))
  const paused = verb === 'pause'
  if (out.json) out.document({ consumer: args.name, paused })
  else out.line(`consumer ${args.name} ${paused ? 'is paused' : 'goes on'}`)
}

export const consumerRm = command({
  noun: 'consumer',
  verb: 'rm',
  summary: 'Remove a consumer that no process runs any more.',
  details: [
    'It is refused while a process runs the consumer, and, without --discard, while there is something that it has not handled. What it has handled is remembered, so that a consumer of this name that comes back handles nothing twice, unless you say --forget.',
  ],
  example: "oncebox consumer rm ship-order --discard --reason 'replaced by the warehouse'",
  options: {
    discard: flag('Give up what it has not handled: what waits, its dead messages, its quarantine.'),
    forget: flag('Forget what it has handled, too: if it comes back, every copy is new.'),
    yes: flag('Do not ask.'),
    ...SIGNED,
  },
  arguments: { name: argument('The consumer.') },
  connects: true,
  output: object({ consumer: string, removed: integer }),
  async run({ io, out, options, args, connect }) {
    const { box } = await connect()
    const { discard, forget } = options
    const { consumers } = await box.admin.status()
    const counts = Object.hasOwn(consumers, args.name) ? consumers[args.name] : undefined
    if (counts) {
      const { pending, processing, dead, quarantined, handled, estimated } = counts
      const open = pending + processing + dead + quarantined
      const about = estimated ? 'about ' : ''
      out.note(`${about}${counted(open, 'message')} not handled, ${about}${counted(handled, 'message')} handled`)
    }
    const others = counts ? undefined : await othersThan(box, args.name, Object.keys(consumers))
    const loss = discard ? ', and give up what it has not handled' : ''
    const what = `remove consumer ${args.name}${loss}${forget ? ', and forget what it has handled' : ''}`
    // Of one that nobody lists a removal that died halfway may have left something, which nobody need be asked about.
    if (!others) await confirm(io, what, options)
    const removed = await box.admin
      .removeConsumer(args.name, { ...signedBy(options), discard, forget })
      .catch((error: unknown) => {
        throw others && isUnknown(error) ? noConsumer(args.name, others) : error
      })
    if (out.json) out.document({ consumer: args.name, removed })
    else out.line(`consumer ${args.name} is removed, with ${counted(removed, 'message')}`)
  },
})

/** The consumers that there are, if this is none of them. */
async function othersThan(box: AnyBox, name: string, counted: readonly string[]): Promise<string[] | undefined> {
  const names = [...new Set([...counted, ...(await box.admin.consumers()).map((one) => one.name)])].filter(Boolean)
  return names.includes(name) ? undefined : names
}

function isUnknown(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'CONSUMER_UNKNOWN'
}

function noConsumer(name: string, others: readonly string[]): Error {
  const hint = hintAt(name, others, 'oncebox consumer ls lists those there are')
  return failed(`there is no consumer ${JSON.stringify(name)}`, hint)
}

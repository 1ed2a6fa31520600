/** `oncebox sink`: where events are published to. */
import { command } from '../command.js'
import { confirm } from '../confirm.js'
import { argument, flag } from '../option.js'
import { counted, showTime } from '../output/duration.js'
import { paint } from '../output/text.js'
import { array, integer, object, string, time } from '../shape.js'
import { SIGNED, signedBy } from '../shared/signed.js'

export const sinkLs = command({
  noun: 'sink',
  verb: 'ls',
  summary: 'List the sinks there are, and the processes that have them.',
  example: 'oncebox sink ls',
  connects: true,
  raw: true,
  output: object({ name: string, 'types?': array(string), processes: array(string), 'seenAt?': time }),
  async run({ out, connect }) {
    const { box } = await connect()
    const sinks = await box.admin.sinks()
    if (out.json) {
      for (const sink of sinks) out.document(sink)
      return
    }
    if (sinks.length === 0) return out.note('no sink is registered yet: box.to(…) and box.start() do it')
    out.table(
      [{ title: 'SINK', least: 10 }, { title: 'TYPES', least: 10 }, { title: 'HAD BY', least: 10 }, { title: 'SEEN' }],
      sinks.map(({ name, types, processes, seenAt }) => [
        ...[name, types?.join(' ') ?? paint('dim', 'all')],
        processes.length > 0 ? processes.join(' ') : paint('dim', 'nobody'),
        seenAt ? showTime(seenAt) : 'never',
      ]),
    )
  },
})

export const sinkRm = command({
  noun: 'sink',
  verb: 'rm',
  summary: 'Remove a sink that no process has any more, and what was still to be published to it.',
  example: "oncebox sink rm old-exchange --reason 'moved to Kafka'",
  options: { yes: flag('Do not ask.'), ...SIGNED },
  arguments: { name: argument('The sink.') },
  connects: true,
  output: object({ sink: string, removed: integer }),
  async run({ io, out, options, args, connect }) {
    const { box } = await connect()
    const { name } = args
    const waiting = { box: 'outbox', consumer: name, state: ['pending', 'dead'] } as const
    const count = await box.admin.discard(waiting, { dryRun: true, reason: 'counts' })
    const isThere = count > 0 || (await box.admin.sinks()).some((sink) => sink.name === name)
    // Nobody is asked about a sink that there is not: the removal says so.
    if (isThere) {
      out.note(`${counted(count, 'event')} still to be published to it`)
      await confirm(io, `remove sink ${name} and these events`, options)
    }
    const removed = await box.admin.removeSink(name, signedBy(options))
    if (out.json) out.document({ sink: name, removed })
    else out.line(`sink ${name} is removed, with ${counted(removed, 'event')}`)
  },
})

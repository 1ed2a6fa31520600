/** `oncebox prune`: delete what is old enough. */
import { command } from '../command.js'
import { confirm } from '../confirm.js'
import { EXIT } from '../exit.js'
import { flag } from '../option.js'
import { counted } from '../output/duration.js'
import { array, boolean, integer, object, string } from '../shape.js'
import { SIGNED, signedBy } from '../shared/signed.js'

export const prune = command({
  noun: 'prune',
  summary: 'Delete now what retention would delete by and by.',
  details: [
    'Only what is handled or given up, and older than its consumer retains it. hooks.archive of a box is asked only where the command runs that box: the one of the config, unless --url is given.',
  ],
  example: 'oncebox prune --yes',
  options: { yes: flag('Do not ask.'), ...SIGNED },
  connects: true,
  output: object({ count: integer, interrupted: boolean, held: array(string) }),
  async run({ io, out, options, connect, signal }) {
    const { box, schema } = await connect({ ownBox: true })
    await confirm(io, `delete for good what consumers of schema ${schema} no longer retain`, options)
    const held: string[] = []
    const tell = (consumer: string): void => void held.push(consumer)
    const count = await box.admin.prune({ ...signedBy(options), signal, held: tell })
    if (out.json) out.document({ count, interrupted: signal.aborted, held })
    else out.line(`${counted(count, 'message')} deleted`)
    for (const consumer of held) {
      out.note(
        `something is left of consumer ${consumer}: a transaction holds its watermark; run it again when that has ended`,
      )
    }
    if (!signal.aborted) return EXIT.ok
    out.note('interrupted; run it again to go on')
    return EXIT.interrupted
  },
})

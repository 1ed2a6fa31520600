/** `oncebox prune`: delete what is old enough. */
import { command } from '../command.js'
import { confirm } from '../confirm.js'
import { flag } from '../option.js'
import { counted } from '../output/duration.js'
import { integer, object } from '../shape.js'
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
  output: object({ count: integer }),
  async run({ io, out, options, connect }) {
    const { box, schema } = await connect({ ownBox: true })
    await confirm(io, `delete for good what consumers of schema ${schema} no longer retain`, options)
    const count = await box.admin.prune(signedBy(options))
    if (out.json) out.document({ count })
    else out.line(`${counted(count, 'message')} deleted`)
  },
})

/** `oncebox effects`: calls outside the database whose outcome nobody knows. */
import { command } from '../command.js'
import { misused } from '../exit.js'
import { argument, flag, json, text } from '../option.js'
import { boolean, object, string } from '../shape.js'
import { SIGNED, signedBy } from '../shared/signed.js'

export const effectsAnswer = command({
  noun: 'effects',
  verb: 'answer',
  summary: 'Say whether an effect happened whose outcome was unknown. The message that waits for it goes on.',
  details: ['Ask the other side first: with --did-not-happen the effect is called again.'],
  example: `oncebox effects answer charge-card --consumer billing --id order-4711 --happened --result '{"charge":"ch_1"}'`,
  options: {
    consumer: text('The consumer whose handler called it.', 'name'),
    id: text('The id of its message.', 'id'),
    source: text('The producer of the message, where ids of several are the same.', 'name'),
    happened: flag('It happened.'),
    result: json('With --happened: what the call had answered.'),
    didNotHappen: flag('It did not happen, and is to be called again.'),
    ...SIGNED,
  },
  arguments: { effect: argument('The name of the effect.') },
  connects: true,
  output: object({ consumer: string, id: string, effect: string, happened: boolean }),
  async run({ out, options, args, connect }) {
    const { consumer, id, source, happened, didNotHappen, result } = options
    if (consumer === undefined || id === undefined) throw misused('which message?', 'give --consumer and --id')
    if (happened === didNotHappen) throw misused('did it happen?', 'say --happened or --did-not-happen')
    if (didNotHappen && result !== undefined) throw misused('what did not happen has no --result')
    const { box } = await connect()
    const at = { consumer, id, effect: args.effect, ...(source !== undefined && { source }) }
    const answer = happened
      ? ({ happened, ...(result !== undefined && { result }) } as const)
      : { happened: false as const }
    await box.admin.answer(at, answer, signedBy(options))
    if (out.json) out.document({ consumer, id, effect: args.effect, happened })
    else out.line(`message ${id} of ${consumer} goes on: ${args.effect} ${happened ? 'happened' : 'did not happen'}`)
  },
})

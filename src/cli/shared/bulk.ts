/** Changes many messages: counts them, asks, changes them with a bar, and says how far it got. */
import type { Criteria, Filter } from '../../admin/index.js'
import { confirm } from '../confirm.js'
import type { Context } from '../command.js'
import { EXIT, misused, type ExitCode } from '../exit.js'
import { flag, integer, type OptionsOf } from '../option.js'
import { counted, showCount } from '../output/duration.js'
import { boolean, integer as whole, object, type Shape } from '../shape.js'
import { checkNames, leftOut } from './none.js'
import { SIGNED, signedBy } from './signed.js'

export const BULK = {
  all: flag('All of them: without a criterion this has to be said.'),
  limit: integer('At most so many, the oldest first.', { least: 1 }),
  rps: integer('At most so many in a second; 0 for as fast as it goes.', { least: 0 }),
  dryRun: flag('Count, and change nothing.'),
  yes: flag('Do not ask.'),
  ...SIGNED,
}

export const BULK_RESULT: Shape = object({ count: whole, dryRun: boolean, interrupted: boolean })

/** More than this at once are not put on running consumers without a word on how fast. */
const MANY = 1_000

export interface BulkVerb {
  readonly verb: 'retry' | 'discard'
  /** `retry`, as the question has it, and `retried`, as the answer has it. */
  readonly ask: string
  readonly done: string
  /** `dead message` */
  readonly thing: string
  /** What somebody has said of which. */
  readonly criteria: Filter
  /** The states are ours: they choose nothing. */
  readonly of: Filter
  /** What to say beforehand if some of them are such. */
  readonly beware?: { readonly of: Filter; readonly words: string }
}

export async function changeMany(
  context: Context<OptionsOf<typeof BULK>, unknown>,
  { verb, ask, done, thing, criteria, of, beware }: BulkVerb,
): Promise<ExitCode> {
  const { io, out, options, signal } = context
  checkChosen(Object.keys(criteria).length > 0, options.all, thing)
  const { by, reason } = signedBy(options)
  if (verb === 'discard' && !reason?.trim()) throw misused(`${ask} needs a reason`, `add --reason 'sent by mistake'`)
  const { box } = await context.connect()
  const chosen = { ...criteria, ...of }
  const change = (bulk: object, which: Filter = chosen): Promise<number> =>
    box.admin[verb](which as Criteria<Filter>, { by, reason: reason as string, signal, ...bulk })

  const count = await change({ dryRun: true, limit: options.limit })
  const answer = (changed: number): void => {
    if (out.json) out.document({ count: changed, dryRun: options.dryRun, interrupted: signal.aborted })
    else out.line(`${counted(changed, thing)} ${options.dryRun ? `to ${ask}` : done}`)
  }
  if (signal.aborted) return EXIT.interrupted
  if (count === 0) await checkNames(box, chosen)
  for (const words of await leftOut(box, chosen)) out.note(words)
  if (count > 0 && beware && couldBe(criteria, beware.of)) {
    const such = await change({ dryRun: true, limit: 1 }, { ...chosen, ...beware.of })
    if (such > 0) out.note(beware.words)
  }
  if (count === 0 || options.dryRun) {
    answer(count)
    return EXIT.ok
  }
  if (verb === 'retry' && count > MANY && options.rps === undefined) {
    const advice = 'add --rps 100 to spread them, or --rps 0 for as fast as it goes'
    throw misused(`${counted(count, thing)} to ${ask}: say how many in a second`, advice)
  }
  out.note(`${counted(count, thing)} to ${ask}`)
  await confirm(io, `${ask} ${counted(count, thing)}`, options)

  const bar = out.progress(ask, count)
  // No more than what was asked about: others may fail meanwhile.
  const perSecond = options.rps ? options.rps : undefined
  const changed = await change({ limit: count, perSecond, progress: (so: number) => bar.at(so) }).finally(() =>
    bar.end(),
  )
  answer(changed)
  if (signal.aborted) {
    out.note(`interrupted: ${showCount(changed)} of ${counted(count, thing)} ${done}; run it again to go on`)
    return EXIT.interrupted
  }
  if (changed < count)
    out.note(`${showCount(count - changed)} stayed as they are: they were refused, or changed meanwhile`)
  return EXIT.ok
}

/** Unless something else was asked for. */
function couldBe(criteria: Filter, { reason }: Filter): boolean {
  return criteria.reason === undefined || criteria.reason === reason
}

function checkChosen(chosen: boolean, all: boolean, thing: string): void {
  if (chosen === all) {
    throw chosen
      ? misused('--all, or which of them, not both')
      : misused(`which ${thing}s?`, 'give ids, or a criterion such as --consumer, or --all')
  }
}

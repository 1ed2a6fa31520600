/** `oncebox import`: what a dedup table knows becomes what a consumer knows. */
import type { HandledId } from '../../admin/index.js'
import { command, type Context } from '../command.js'
import type { AnyBox } from '../connect/connect.js'
import { shellWord } from '../connect/place.js'
import { confirm } from '../confirm.js'
import { EXIT, misused, type ExitCode } from '../exit.js'
import { flag, text, texts, type OptionsOf } from '../option.js'
import { showCount } from '../output/duration.js'
import { boolean, integer, object, string } from '../shape.js'
import type { Columns, DedupTable, Unfit } from '../shared/dedup-table.js'
import { SIGNED, signedBy } from '../shared/signed.js'

const OPTIONS = {
  fromTable: text('The table: schema.table.', 'table'),
  idColumn: text('The column with the ids of messages.', 'column'),
  consumer: text('The consumer that has handled them.', 'name'),
  source: text('The producer of all of them, as messages will name it.', 'name'),
  sourceColumn: text('The column that names the producer.', 'column'),
  type: text('The type of all of them; without one, copies of any type are duplicates.', 'name'),
  typeColumn: text('The column that names the type.', 'column'),
  atColumn: text(
    'The column with the time at which each was handled; what is older than the consumer retains is not recorded then. Only for messages that carry their time.',
    'column',
  ),
  only: texts('Only rows with this value: column=value.', 'column=value'),
  after: text('Go on behind this id, in the order of the column: an import that is stopped says which.', 'id'),
  dryRun: flag('Read and count, and change nothing.'),
  yes: flag('Do not ask.'),
  ...SIGNED,
}

export const importMarks = command({
  noun: 'import',
  summary: 'Record as handled what a table of your own says was handled.',
  details: [
    'Reads the table along its ids, which an index makes quick, and records them for the consumer: copies that come later are duplicates. Messages that wait under such an id are settled without being run.',
    'What is recorded already is not recorded twice: it can be run again, also while both are in use.',
  ],
  example: 'oncebox import --from-table public.processed --id-column message_id --source shop --consumer billing',
  options: OPTIONS,
  connects: true,
  output: object({
    table: string,
    consumer: string,
    rows: integer,
    marked: integer,
    skipped: integer,
    dryRun: boolean,
  }),
  async run(context) {
    const { options, io, out, connect } = context
    const wanted = checked(options)
    const { box, db } = await connect()
    const { openDedupTable } = await import('../shared/dedup-table.js')
    const table = await openDedupTable(db.driver, wanted.table, wanted.columns)
    const total = await table.count()
    if (!options.dryRun) {
      await confirm(io, `record ${showCount(total)} rows of ${table.name} as handled by ${wanted.consumer}`, options)
    }
    const read = await take(context, { box, table, total, consumer: wanted.consumer })
    const { rows, marked, skipped } = read
    if (out.json) out.document({ table: table.name, consumer: wanted.consumer, rows, marked, skipped, dryRun: options.dryRun }) // prettier-ignore
    else if (options.dryRun) out.line(`${showCount(rows)} rows of ${table.name} would be recorded; nothing was changed`)
    else out.line(`${showCount(rows)} rows of ${table.name}: ${showCount(marked)} recorded as handled by ${wanted.consumer}, the others were already, or are beyond its horizon`) // prettier-ignore
    for (const [what, count] of read.unfit) out.note(`${showCount(count)} rows have ${UNFIT[what]}, and were left out`)
    return read.code
  },
})

const UNFIT: Readonly<Record<Unfit, string>> = {
  id: 'an id that no message can have',
  source: 'a source that no message can have',
  type: 'a type that no message can have',
  time: 'a time that is not from the year 1 to 9999',
}

interface Wanted {
  readonly table: string
  readonly consumer: string
  readonly columns: Columns
}

function checked(options: OptionsOf<typeof OPTIONS>): Wanted {
  const { fromTable, idColumn, consumer, only = [] } = options
  for (const [name, value] of [
    ['--from-table', fromTable],
    ['--id-column', idColumn],
    ['--consumer', consumer],
  ] as const)
    // prettier-ignore
    if (value === undefined) throw misused(`import needs ${name}`)
  for (const one of ['source', 'type'] as const) {
    if (options[one] !== undefined && options[`${one}Column`] !== undefined)
      throw misused(`--${one} and --${one}-column exclude each other`)
  }
  const criteria = only.map((given) => {
    const [, column, value] = /^([^=]+)=(.*)$/s.exec(given) ?? []
    if (column === undefined) throw misused(`--only takes column=value; got "${given}"`)
    return { column, value: value! }
  })
  const { sourceColumn: source, typeColumn: type, atColumn: at } = options
  return { table: fromTable!, consumer: consumer!, columns: { id: idColumn!, source, type, at, only: criteria } }
}

interface Import {
  readonly box: AnyBox
  readonly table: DedupTable
  readonly total: number
  readonly consumer: string
}

interface Read {
  readonly code: ExitCode
  readonly rows: number
  readonly marked: number
  readonly skipped: number
  /** Of the skipped ones, what is wrong with how many. */
  readonly unfit: ReadonlyMap<Unfit, number>
}

/** Reads and records, until the end or Ctrl-C. */
async function take(
  { options, out, signal }: Context<OptionsOf<typeof OPTIONS>>,
  { box, table, total, consumer }: Import,
): Promise<Read> {
  const done = { rows: 0, skipped: 0, unfit: new Map<Unfit, number>() }
  let last = options.after
  const progress = out.progress(options.dryRun ? 'reading' : 'recording', total)
  let more = true
  async function* rows(): AsyncGenerator<HandledId> {
    while (more && !signal.aborted) {
      const page = await table.page(last)
      for (const one of page.ids) yield one
      // When it is asked for more, all of the page is recorded or about to be.
      done.rows += page.ids.length + page.unfit.length
      done.skipped += page.unfit.length
      for (const what of page.unfit) done.unfit.set(what, (done.unfit.get(what) ?? 0) + 1)
      progress.at(done.rows)
      more = page.next !== undefined
      last = page.next
    }
  }
  let marked = 0
  try {
    if (options.dryRun) for await (const _ of rows());
    else {
      const { source, type } = options
      const signed = signedBy({ ...options, reason: options.reason ?? `import from ${table.name}` })
      const of = { ...(source !== undefined && { source }), ...(type !== undefined && { type }) }
      marked = await box.admin.markHandled(consumer, rows(), { ...of, ...signed })
    }
  } finally {
    progress.end()
  }
  if (!signal.aborted) return { code: EXIT.ok, marked, ...done }
  // What cannot be copied is not named: to begin again is exact, too.
  const how = last === undefined ? undefined : shellWord(`--after=${last}`)
  const advice = how === undefined ? 'run it again' : `go on with ${how}`
  if (more) out.note(`stopped after ${showCount(done.rows)} rows; ${advice}`)
  return { code: EXIT.interrupted, marked, ...done }
}

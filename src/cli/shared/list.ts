/** Lists messages that fit a filter. */
import type { Filter } from '../../admin/index.js'
import type { Context } from '../command.js'
import type { OptionsOf } from '../option.js'
import { entryColumns, entryDocument, entryRow, type AnyEntry } from './entry.js'
import { type PAGE, readPages, tellMore } from './paging.js'
import { showWhole } from './show.js'

/** With `whole`, everything that is known of each, one below the other. */
export async function listMessages(
  context: Context<OptionsOf<typeof PAGE> & { readonly whole?: boolean }, unknown>,
  filter: Filter,
  what: string,
): Promise<void> {
  const { out, options, signal } = context
  const { box } = await context.connect()
  const whom = filter.box === 'outbox' ? 'sink' : 'consumer'
  const rows: AnyEntry[] = []
  const read = async (page: { limit: number; cursor: string | undefined }) => {
    const { entries, cursor } = await box.admin.messages(filter, page)
    return { items: entries, cursor }
  }
  const { count, cursor } = await readPages({ options, signal }, read, (entries) => {
    if (out.json && !options.whole) for (const entry of entries) out.document(entryDocument(entry, whom))
    else rows.push(...entries)
  })
  if (options.whole) showWhole(out, rows, { data: true, stack: false })
  else if (rows.length > 0) out.table(entryColumns(whom), rows.map(entryRow))
  if (count === 0) out.note(`no ${what}`)
  tellMore(out, cursor)
}

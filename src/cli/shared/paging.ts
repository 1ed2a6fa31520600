/** Lists that are longer than a page. */
import { integer, text, type OptionsOf } from '../option.js'
import type { Output } from '../output/output.js'

export const PAGE = {
  limit: integer('At most so many.', { least: 1, fallback: 50 }),
  cursor: text('Go on where an earlier list ended: it printed this.', 'cursor'),
}

/** What the admin takes at once. */
const MOST = 1_000

interface Page<T> {
  readonly items: readonly T[]
  readonly cursor?: string | undefined
}

export interface Pages {
  readonly options: OptionsOf<typeof PAGE>
  readonly signal: AbortSignal
}

/** As many as were asked for, page by page, and where to go on. */
export async function readPages<T>(
  { options, signal }: Pages,
  read: (page: { limit: number; cursor: string | undefined }) => Promise<Page<T>>,
  each: (items: readonly T[]) => void,
): Promise<{ count: number; cursor: string | undefined }> {
  let { cursor } = options
  let count = 0
  do {
    const page = await read({ limit: Math.min(MOST, options.limit - count), cursor })
    each(page.items)
    count += page.items.length
    cursor = page.cursor
  } while (cursor !== undefined && count < options.limit && !signal.aborted)
  return { count, cursor }
}

export function tellMore(out: Output, cursor: string | undefined): void {
  if (cursor !== undefined) out.note('there are more: add --cursor ', cursor)
}

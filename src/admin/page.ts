/** Pages: how long one may be. The cursor is checked by the listing that wrote it. */
import { checked, integer, optional } from '../options.js'

export interface Page {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export const PAGE = {
  cursor: optional(checked((_, given: string) => given)),
  limit: integer({ least: 1, most: 1_000, fallback: 50 }),
}

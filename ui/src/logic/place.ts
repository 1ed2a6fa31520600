/** Places: what an address of the interface says. The query is a part of it, so that a search can be sent to a colleague. */

export const PAGES = [
  'overview', 'messages', 'message', 'failures', 'quarantine', 'keys', 'outbox', 'doctor', 'audit', 'settings',
] as const // prettier-ignore

export type PageName = (typeof PAGES)[number]

export interface Place {
  readonly page: PageName
  /** Absent: the first box there is. */
  readonly box?: string
  readonly query: Readonly<Record<string, string>>
}

/** Undefined: no page is there. */
export function readPlace(base: string, pathname: string, search: string): Place | undefined {
  if (pathname !== base && !pathname.startsWith(`${base}/`)) return undefined
  const [page = '', box, ...more] = pathname.slice(base.length + 1).split('/')
  if (more.length > 0 || !(page === '' || isPage(page))) return undefined
  return {
    page: page === '' ? 'overview' : page,
    ...(box !== undefined && box !== '' && { box: decode(box) }),
    query: Object.fromEntries(new URLSearchParams(search)),
  }
}

export function writePlace(base: string, { page, box, query }: Place): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString()
  const path = `${base}/${page}${box === undefined ? '' : `/${encodeURIComponent(box)}`}`
  return search === '' ? path : `${path}?${search}`
}

function isPage(name: string): name is PageName {
  return (PAGES as readonly string[]).includes(name)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

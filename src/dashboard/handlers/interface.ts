/** The interface: its files, and its one page, which is the same under every path. */
import type { Call } from '../desk.js'
import { pageAt } from '../page.js'
import { notFound } from '../problem.js'
import { PAGE_POLICY, respond } from '../respond.js'
import { readAsset } from '../assets.js'

/** The pages there are. A name that is none of them is not found, so that a misspelt link is not an empty page. */
export const PAGES: readonly string[] = [
  'overview', 'messages', 'message', 'failures', 'quarantine', 'keys', 'outbox', 'doctor', 'audit', 'settings',
] // prettier-ignore

export async function file(_: Call, name: string): Promise<Response> {
  const asset = await readAsset(name)
  if (!asset) throw notFound('there is no such file')
  const { bytes, type, cache } = asset
  return respond(bytes, { type, cache, policy: PAGE_POLICY })
}

export async function page({ base, desk }: Call, { page: name }: { readonly page?: string }): Promise<Response> {
  if (name !== undefined && !PAGES.includes(name)) throw notFound('there is no such page')
  const { title, environment, readOnly } = desk.settings
  const html = await pageAt({ base, title, environment, readOnly })
  return respond(html, { type: 'text/html; charset=utf-8', policy: PAGE_POLICY })
}

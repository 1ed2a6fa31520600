/** The JSON API, by the typed client that scripts use as well. */
import { timeZone } from './preferences.js'
import { createClient, DashboardError } from '../../src/dashboard/client.js'
import { told } from './told.js'

export { DashboardError } from '../../src/dashboard/client.js'
export type * from '../../src/dashboard/client.js'

/** Nothing here leads elsewhere but `authorize`, to where one signs in: that is for a page, not for what a page asks. */
async function ask(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'manual' })
  if (response.type !== 'opaqueredirect') return response
  throw new DashboardError(401, { code: 'UNAUTHENTICATED', message: 'sign in again' })
}

export const api = createClient({ url: told.base, fetch: ask })

/** Minutes that the clock which the reader has chosen is ahead of UTC: for times without a zone in a query. */
export const zone = (): number => (timeZone.value === 'utc' ? 0 : -new Date().getTimezoneOffset())

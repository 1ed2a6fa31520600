/** The JSON API, by the typed client that scripts use as well. */
import { timeZone } from './preferences.js'
import { createClient } from '../../src/dashboard/client.js'
import { told } from './told.js'

export { DashboardError } from '../../src/dashboard/client.js'
export type * from '../../src/dashboard/client.js'

export const api = createClient({ url: told.base, fetch: (url, init) => fetch(url, init) })

/** Minutes that the clock which the reader has chosen is ahead of UTC: for times without a zone in a query. */
export const zone = (): number => (timeZone.value === 'utc' ? 0 : -new Date().getTimezoneOffset())

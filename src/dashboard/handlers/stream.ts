/** The stream: events for browsers that keep the page open. */
import type { BoxCall } from '../desk.js'
import { shownOverview } from '../overview.js'
import { respond } from '../respond.js'
import { shownJobs } from './bulk.js'

export function stream({ part, viewer, access }: BoxCall): Response {
  const events = part.hub.open(access.subject, {
    overview: (read) => shownOverview(viewer, read),
    jobs: (listed) => ({ jobs: shownJobs(viewer, listed) }),
  })
  // Proxies must not keep events back to send them together.
  return respond(events, { type: 'text/event-stream; charset=utf-8', headers: { 'x-accel-buffering': 'no' } })
}

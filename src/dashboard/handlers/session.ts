/** The session: who asks, and what they may. */
import { ACTIONS } from '../access.js'
import type { Session } from '../answers/index.js'
import { partsFor, type Call } from '../desk.js'
import { MOST_PER_PAGE, MOST_PER_SECOND, RATE_ABOVE } from '../routes.js'

export function session(call: Call): Session {
  const { access, desk } = call
  const { title, environment, readOnly } = desk.settings
  return {
    ...(access.by !== undefined && { user: access.by }),
    may: ACTIONS.filter((action) => access.may.has(action)),
    title,
    ...(environment !== undefined && { environment }),
    readOnly,
    boxes: partsFor(call).map(({ name, stage }) => ({ name, schema: stage.runtime.db.schema })),
    limits: { pageSize: MOST_PER_PAGE, rateAbove: RATE_ABOVE, mostPerSecond: MOST_PER_SECOND },
  }
}

/** What the last hours and days were like. */
import type { History } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import { readHistory } from '../history.js'
import type { RouteInput } from '../routes.js'

export function history({ part }: BoxCall, { minutes }: RouteInput<'history'>): Promise<History> {
  return readHistory(part.reads, minutes)
}

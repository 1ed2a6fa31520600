/** Access: who asks, and what they may. Everything else is refused: what is not granted here no route will do. */
import { nameProblem } from '../check-options.js'
import { isResponse } from '../http/response.js'
import { invalid } from '../options.js'
import type { Action } from './answers/index.js'
import { Problem } from './problem.js'
import type { Permission } from './routes.js'

/**
 * `all` is everything, bodies included. `read` is to look at everything but payloads, headers, results and the words of errors;
 * `new Set(['read', 'bodies'])` is to look at these too. Each of the others is one thing to do, and includes nothing else.
 */
export type Grant = 'all' | 'read' | ReadonlySet<Action>

export interface Granted {
  may: Grant
  /** Who it is, for the audit. */
  by?: string | undefined
  /** The boxes that they get to see. Default: all. */
  boxes?: readonly string[] | undefined
}

/** Nobody: null. A Response, such as a redirect to a page to log in at, is answered as it is. */
export type Authorize = (
  request: Request,
) => Grant | Granted | Response | null | undefined | Promise<Grant | Granted | Response | null | undefined>

export interface Access {
  readonly by: string | undefined
  readonly may: ReadonlySet<Action>
  readonly boxes: ReadonlySet<string> | undefined
  /** Whose cursors and confirmations they are, and whose searches are counted. */
  readonly subject: string
}

export const ACTIONS: readonly Action[] = ['read', 'bodies', 'retry', 'discard', 'answer', 'pause']
const LOOKING: ReadonlySet<Action> = new Set(['read', 'bodies'])

export async function askWho(authorize: Authorize, request: Request, readOnly: boolean): Promise<Access | Response> {
  const answer = await authorize(request)
  if (answer === null || answer === undefined) {
    throw new Problem('UNAUTHENTICATED', 'you are not logged in here, or have no right to see this')
  }
  if (isResponse(answer)) return answer
  const { may, by, boxes }: Granted = isGrant(answer) ? { may: answer } : answer
  const problem = by === undefined ? undefined : nameProblem(by)
  if (problem) throw invalid(`dashboard: authorize answered a name, by, that ${problem}`)
  if (!isNames(boxes)) throw invalid('dashboard: boxes of authorize must be an array of names')
  const granted = actionsOf(may).filter((action) => !readOnly || LOOKING.has(action))
  const scope = boxes && [...boxes].sort()
  return {
    by,
    may: new Set(granted),
    boxes: scope && new Set(scope),
    subject: JSON.stringify([by ?? null, granted, scope ?? null]),
  }
}

function isNames(boxes: unknown): boxes is readonly string[] | undefined {
  return boxes === undefined || (Array.isArray(boxes) && boxes.every((name) => typeof name === 'string'))
}

function isGrant(answer: unknown): answer is Grant {
  return typeof answer === 'string' || isSet(answer)
}

/** Of any realm, or copy. */
function isSet(value: unknown): value is ReadonlySet<unknown> {
  return Object.prototype.toString.call(value) === '[object Set]'
}

/** In one order, whatever the set's is. */
function actionsOf(grant: unknown): Action[] {
  if (grant === 'all') return [...ACTIONS]
  if (grant === 'read') return ['read']
  if (!isSet(grant)) throw invalid(`dashboard: authorize must answer 'all', 'read', a Set of actions, or null`)
  const strange = [...grant].find((action) => !ACTIONS.includes(action as Action))
  if (strange !== undefined) {
    throw invalid(`dashboard: authorize answered an action that there is not; there are ${ACTIONS.join(', ')}`)
  }
  return ACTIONS.filter((action) => grant.has(action))
}

export function requirePermission({ may }: Access, needs: Permission): void {
  if (needs === 'session' || may.has(needs)) return
  throw new Problem('FORBIDDEN', `you may not do this: it takes the right ‘${needs}’`, { needs })
}

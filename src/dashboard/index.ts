/**
 * The dashboard: a fetch handler that shows boxes to people, and lets them act.
 *
 *     const ops = dashboard(box, { authorize: (request) => (isAdmin(request) ? { may: 'all', by: nameOf(request) } : null) })
 *     app.use('/ops/inbox', toNodeListener(ops))
 *
 * host → route and method → site → who asks → may they → input → answer
 *
 * The table of routes is in routes.ts; what each does, in handlers/.
 */
import { createIntake, type Intake } from '../http/body.js'
import { mountOf } from '../http/handler.js'
import { tellSafely } from '../http/report.js'
import { isResponse } from '../http/response.js'
import { MIB } from '../figures.js'
import { askWho, requirePermission, type Access, type Authorize } from './access.js'
import { createDesk, callOf, type BoxCall, type Desk } from './desk.js'
import { checkHost, checkLocal, checkSite } from './guard.js'
import { HANDLERS } from './handlers/index.js'
import { matchAll, type Matched } from './match.js'
import { insidesOf, resolveDashboard, type DashboardOptions, type ShownBox } from './options.js'
import { notFound, Problem, toProblem } from './problem.js'
import { checkType, readInput } from './read-input.js'
import { json, passOn, refusal } from './respond.js'

export type { Authorize, Grant, Granted } from './access.js'
export type { Action } from './answers/index.js'
export type { DashboardOptions, ShownBox } from './options.js'
export type { Redact, Redactable } from './redact.js'

export interface Dashboard {
  /** Takes a request from whatever serves HTTP. It may be passed on without its object. */
  fetch(request: Request): Promise<Response>
  /**
   * Ends streams, and lets go of the changes that run here, for others to carry on. For a process that stops: before its box
   * does.
   */
  close(): Promise<void>
}

const BODIES = { maxBytes: 2 * MIB, bodyTimeoutMs: 10_000, maxBufferedBytes: 16 * MIB }

export function dashboard(boxes: ShownBox | Readonly<Record<string, ShownBox>>, options: DashboardOptions): Dashboard {
  const settings = resolveDashboard(options ?? {})
  const desk = createDesk(insidesOf(boxes), settings)
  const intake = createIntake(BODIES)
  return {
    async close() {
      for (const { hub } of desk.parts.values()) hub.close()
      await Promise.all([...desk.parts.values()].map(({ jobs }) => jobs.close()))
    },
    async fetch(request) {
      try {
        return await answer(desk, request, intake)
      } catch (error) {
        const problem = toProblem(error)
        const isOurs = problem.code === 'INTERNAL' || problem.code === 'DATABASE_AWAY'
        const told = error instanceof Problem ? error.cause : error
        if (isOurs && told !== undefined) tellSafely(settings.onError, told)
        return refusal(request, problem, error instanceof WrongMethod ? { allow: error.allow } : {})
      }
    },
  }
}

class WrongMethod extends Problem {
  constructor(readonly allow: string) {
    super('METHOD_NOT_ALLOWED', `this takes ${allow}`)
  }
}

async function answer(desk: Desk, request: Request, intake: Intake): Promise<Response> {
  const { settings } = desk
  const found = mountOf(request).base
  const base = settings.base ?? settings.mount ?? found
  checkHost(request, settings.hosts)
  const matched = findRoute(request, [base, settings.mount ?? (found || base)])
  const { route, name } = matched
  checkSite(request, route, settings.hosts)
  const access = await letIn(desk, request)
  if (isResponse(access)) return passOn(access)
  requirePermission(access, route.needs)
  if (route.method === 'POST') checkType(request)
  const input = await readInput(request, matched, intake)
  if (route.search) desk.buckets.take(access.subject)
  const { redact } = settings
  const viewer = { access, redact, report: (error: unknown) => tellSafely(settings.onError, error) }
  const call = { desk, request, access, viewer, base }
  const isOfBox = route.kind !== 'page' && typeof input['box'] === 'string'
  const whole = isOfBox ? await callOf(call, input['box'] as string) : call
  const handler = HANDLERS[name] as (call: BoxCall, input: object) => unknown
  const answered = await handler(whole as BoxCall, input)
  return isResponse(answered) ? answered : json(answered)
}

function findRoute(request: Request, places: readonly string[]): Matched {
  const path = pathBelow(request, places)
  if (path === undefined) throw notFound('the dashboard is not here; see its options base and mount')
  const found = matchAll(path)
  if (found.length === 0) throw notFound('there is nothing here')
  const fitting = found.find(({ route }) => route.method === request.method)
  if (!fitting) throw new WrongMethod(found.map(({ route }) => route.method).join(', '))
  return fitting
}

/**
 * Below the base, which is what readers see, or below where the dashboard is mounted, by its option or by what the bridge says: a
 * proxy between the two may take a part of the path away, or add one. Where nobody says it the base alone is ours, for somebody
 * may guard that path.
 */
function pathBelow(request: Request, places: readonly string[]): string | undefined {
  const { pathname } = new URL(request.url)
  const place = places
    .toSorted((one, other) => other.length - one.length)
    .find((one) => pathname === one || pathname.startsWith(`${one}/`))
  return place === undefined ? undefined : pathname.slice(place.length) || '/'
}

const ON_THIS_MACHINE: Authorize = () => ({ may: 'all' })

/** What `authorize` does wrong is the operator's to know, and lets nobody in. */
async function letIn({ settings }: Desk, request: Request): Promise<Access | Response> {
  const { authorize = ON_THIS_MACHINE, dev, readOnly, onError } = settings
  if (dev) checkLocal(request)
  try {
    return await askWho(authorize, request, readOnly)
  } catch (error) {
    if (error instanceof Problem) throw error
    tellSafely(onError, error)
    throw new Problem('INTERNAL', 'who you are could not be found out; the log of the server says why')
  }
}

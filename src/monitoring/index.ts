/**
 * Monitoring over HTTP: a fetch handler for Prometheus and for the probes of whatever runs the process.
 *
 *     http.createServer(toNodeListener(monitoring(box))).listen(9464)
 *
 *     /metrics   what box.metrics() tells, of one box or of several
 *     /healthz   the process answers: nothing else is asked
 *     /readyz    box.health(), of all of them: 200 or 503
 */
import type { Box } from '../box.js'
import { plainWords } from '../failure.js'
import type { Health } from '../health.js'
import { mountOf } from '../http/handler.js'
import { isResponse } from '../http/response.js'
import type { MessageMap } from '../message.js'
import { METERED, type Metered } from '../metrics/index.js'
import { CONTENT_TYPE, toPrometheus } from '../metrics/prometheus.js'
import { invalid, resolve, type Resolved } from '../options.js'
import { MONITORING, type MonitoringOptions, type MonitoringPage } from './options.js'

export type { Authorized, MonitoringOptions, MonitoringPage } from './options.js'

/** Any box: monitoring reads, and calls no handler. */
export type MonitoredBox = Pick<Box<MessageMap, never, never>, 'health' | 'metrics'>

/** One box, or several: by names of your own where schemas of different databases have one name. */
export type MonitoredBoxes = MonitoredBox | readonly MonitoredBox[] | Readonly<Record<string, MonitoredBox>>

export interface Monitoring {
  /** Takes a request from whatever serves HTTP. It may be passed on without its object. */
  fetch(request: Request): Promise<Response>
}

interface Named {
  readonly name: string
  readonly box: MonitoredBox
  readonly metered: Metered
}

export function monitoring(boxes: MonitoredBoxes, options: MonitoringOptions = {}): Monitoring {
  const resolved = resolve('monitoring', options, MONITORING)
  const named = namesOf(boxes)
  const pages: Record<MonitoringPage, () => Promise<Page>> = {
    metrics: shared(() => metricsPage(named)),
    healthz: () => Promise.resolve({ status: 200, type: 'text/plain; charset=utf-8', body: 'ok\n' }),
    readyz: shared(() => readyPage(named, resolved)),
  }
  const serve = async (request: Request): Promise<Response> => {
    const page = pageOf(request)
    if (page === undefined) return plain(404, 'not found')
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'GET or HEAD', { allow: 'GET, HEAD' })
    const refusal = await refusalOf(resolved, request, page)
    if (refusal) return refusal
    const { status, type, body } = await pages[page]()
    const headers = { 'content-type': type, 'cache-control': 'no-store' }
    return new Response(request.method === 'HEAD' ? null : body, { status, headers })
  }
  return {
    async fetch(request) {
      try {
        return await serve(request)
      } catch (error) {
        // Of the application's own `authorize`, as a rule. The answer says nothing of it.
        named[0]!.metered.log.error({ error: plainWords(error) }, 'monitoring could not answer')
        return plain(500, 'internal error')
      }
    },
  }
}

interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
}

function namesOf(boxes: MonitoredBoxes): readonly Named[] {
  if (isBox(boxes)) return [named(boxes)]
  const list = Array.isArray(boxes)
    ? (boxes as readonly MonitoredBox[]).map((box) => named(box))
    : Object.entries((boxes ?? {}) as Readonly<Record<string, MonitoredBox>>).map(([name, box]) => named(box, name))
  if (list.length === 0) throw invalid('monitoring takes a box, a list of boxes, or an object of them')
  const twin = list.find(({ name }, at) => list.findIndex((one) => one.name === name) < at)
  if (twin) {
    const name = JSON.stringify(twin.name)
    throw invalid(`monitoring: two boxes have the schema ${name}; name them: monitoring({ eu: boxA, us: boxB })`)
  }
  return list
}

function named(box: MonitoredBox, name?: string): Named {
  const metered = (box as Partial<Record<typeof METERED, Metered>> | null | undefined)?.[METERED]
  if (!metered) throw invalid('monitoring takes a box, a list of boxes, or an object of them')
  return { name: name ?? metered.name, box, metered }
}

function isBox(given: unknown): given is MonitoredBox {
  return typeof given === 'object' && given !== null && METERED in given
}

/** Requests that come together are answered together. */
function shared(make: () => Promise<Page>): () => Promise<Page> {
  let making: Promise<Page> | undefined
  return () => (making ??= make().finally(() => (making = undefined)))
}

async function metricsPage(boxes: readonly Named[]): Promise<Page> {
  const told = boxes.map(async ({ name, metered }) => ({ box: name, families: await metered.collect() }))
  return { status: 200, type: CONTENT_TYPE, body: toPrometheus(await Promise.all(told)) }
}

async function readyPage(boxes: readonly Named[], options: Resolved<typeof MONITORING>): Promise<Page> {
  const { maxLagMs } = options
  const limits = maxLagMs === undefined ? {} : { maxLagMs }
  const asked = boxes.map(async ({ name, box }) => [name, shown(await box.health(limits), options)] as const)
  const answers = await Promise.all(asked)
  const ok = answers.every(([, health]) => health.ok)
  const body = `${JSON.stringify({ ok, boxes: Object.fromEntries(answers) })}\n`
  return { status: ok ? 200 : 503, type: 'application/json', body }
}

function shown({ reasons, ...health }: Health, options: Resolved<typeof MONITORING>): Health {
  return options.reasons && reasons ? { ...health, reasons } : health
}

/** Under whatever path it is mounted. Where nobody says which, the last part of the path decides. */
function pageOf(request: Request): MonitoringPage | undefined {
  const { base } = mountOf(request)
  const path = new URL(request.url).pathname.replace(/\/$/, '')
  const rest = base !== '' && path.startsWith(`${base}/`) ? path.slice(base.length) : path.slice(path.lastIndexOf('/'))
  return (['metrics', 'healthz', 'readyz'] as const).find((page) => rest === `/${page}`)
}

async function refusalOf(
  { authorize }: Resolved<typeof MONITORING>,
  request: Request,
  page: MonitoringPage,
): Promise<Response | undefined> {
  const answer: unknown = authorize ? await authorize(request, page) : true
  if (isResponse(answer)) return answer
  // Anything else than a clear yes is a no.
  return answer === true ? undefined : plain(401, 'unauthorized')
}

function plain(status: number, text: string, headers: Record<string, string> = {}): Response {
  const all = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...headers }
  return new Response(`${text}\n`, { status, headers: all })
}

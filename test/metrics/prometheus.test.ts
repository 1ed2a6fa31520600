/** The dashboard and the alerts that are shipped, against a box under load and a real Prometheus. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toNodeListener } from 'oncebox/http'
import { monitoring } from 'oncebox/monitoring'
import { promtool, startPrometheus } from '../../tools/services/prometheus.mjs'
import { METRIC_NAMES } from '../../src/metrics/declarations.js'
import { prometheusName } from '../../src/metrics/prometheus.js'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { startLoad, type Load } from './load.js'
import { scrape, type Scrape } from './scrape.js'

const MONITORING = fileURLToPath(new URL('../../monitoring/', import.meta.url))
const server = useServer('metrics_prometheus')

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const rules = readFileSync(path.join(MONITORING, 'prometheus-alerts.yml'), 'utf8')
const dashboard = JSON.parse(readFileSync(path.join(MONITORING, 'grafana-dashboard.json'), 'utf8')) as {
  panels: Panel[]
  templating: { list: { definition?: string }[] }
}
const panels = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const))

let box: Bench
let load: Load
let http: Server

beforeAll(async () => {
  box = await server.open()
  load = await startLoad(box)
  http = createServer(toNodeListener(monitoring(box))).listen(0, '127.0.0.1')
  await waitUntil(() => http.listening)
})
afterAll(async () => {
  http.close()
  http.closeAllConnections()
  await load.stop()
  await box[Symbol.asyncDispose]()
})

/** Everything has happened at least once. */
function whole(told: Scrape): boolean {
  return (
    told.sum('oncebox_dead_letters_total') > 0 &&
    told.sum('oncebox_relay_dead_letters_total') > 0 &&
    told.sum('oncebox_effects_total') > 0 &&
    told.sum('oncebox_outbox_events', { state: 'dead' }) > 0 &&
    told.sum('oncebox_quarantine') > 0
  )
}

const named = (text: string): Set<string> => new Set(text.match(/\b(?:oncebox|messaging)_[a-z_]+\b/g))

test('a scrape of a box under load has every metric that is declared, and promtool finds no fault with it', async () => {
  const told = await waitUntil(async () => {
    const now = await scrape(box)
    return whole(now) && now
  })
  expect([...told.types.keys()].sort()).toEqual(METRIC_NAMES.map(prometheusName).sort())
  await promtool(['check', 'metrics'], { input: told.text })
})

test('every metric that the dashboard and the alerts name is in a scrape, with the labels that they go by', async () => {
  const told = await scrape(box)
  const names = new Set(told.samples.map(({ name }) => name))
  const asked = named(rules + panels.map(([, expr]) => expr).join('\n') + JSON.stringify(dashboard.templating))
  expect(asked.size).toBeGreaterThan(20)
  expect([...asked].filter((name) => !names.has(name))).toEqual([])
})

test('the rules pass promtool, and its tests of them', async () => {
  await promtool(['check', 'rules', '--lint-fatal', 'prometheus-alerts.yml'], { cwd: MONITORING })
  await promtool(['test', 'rules', 'prometheus-alerts.test.yml'], { cwd: MONITORING })
})

test('every alert has a test, and leads to a heading of the runbook', () => {
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!)
  const tests = readFileSync(path.join(MONITORING, 'prometheus-alerts.test.yml'), 'utf8')
  expect(alerts.length).toBeGreaterThan(5)
  expect(alerts.filter((name) => !tests.includes(name))).toEqual([])
  expect(rules.match(/runbook_url: \S+docs\/runbook\.md#[a-z-]+$/gm)).toHaveLength(alerts.length)
})

test('a real Prometheus scrapes it, and every query of the dashboard returns data', async () => {
  const { port } = http.address() as AddressInfo
  await using prometheus = await startPrometheus([`127.0.0.1:${port}`])
  const query = async (expr: string): Promise<number[]> => {
    const ready = expr.replaceAll(/\$(box|consumer)/g, '.*').replaceAll('$__rate_interval', '15s')
    const response = await fetch(`${prometheus.url}/api/v1/query?${new URLSearchParams({ query: ready }).toString()}`)
    const answer = (await response.json()) as { error?: string; data?: { result: { value: [number, string] }[] } }
    if (answer.error !== undefined) throw new Error(`${answer.error}: ${ready}`)
    return answer.data!.result.map(({ value }) => Number(value[1])).filter((value) => !Number.isNaN(value))
  }
  const empty = async (): Promise<string[]> => {
    const without: string[] = []
    for (const [title, expr] of panels) if ((await query(expr)).length === 0) without.push(`${title}: ${expr}`)
    return without
  }
  let missing: string[] = []
  await waitUntil(async () => (missing = await empty()).length === 0, { everyMs: 500 }).catch(() => undefined)
  expect(missing).toEqual([])
  expect(await query('up')).toEqual([1])
})

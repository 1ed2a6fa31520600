/** The options of a dashboard, and the boxes that it shows. */
import { BACKSTAGE, type Backstage } from '../admin/index.js'
import type { Health } from '../health.js'
import { MOUNT } from '../http/handler.js'
import { warning, type Report } from '../http/report.js'
import { boolean, callback, checked, invalid, name, optional, resolve } from '../options.js'
import type { Authorize } from './access.js'
import type { Redact } from './redact.js'

export interface DashboardOptions {
  /**
   * Who asks, and what they may: `'all'`, `'read'`, a Set of actions, or `{ may, by, boxes }` with a name for the audit; null for
   * nobody. Asked for every request. Without it a dashboard does not start, unless `dev` is said.
   */
  authorize?: Authorize | undefined
  /** For your own machine: everybody on it may do everything, and nobody else anything. Refused in production. */
  dev?: boolean | undefined
  /** Answers a message without what nobody may see here. Default: all of it is shown to who may see bodies. */
  redact?: Redact | undefined
  /** Default: oncebox. */
  title?: string | undefined
  /** Such as production: shown as a badge. */
  environment?: string | undefined
  /** Nobody changes anything, whatever `authorize` says. Default: false. */
  readOnly?: boolean | undefined
  /** The names that it is reached under, such as `ops.example.com`, with a port or without. Default: any. */
  hosts?: readonly string[] | undefined
  /** The path that readers see it under, such as `/ops/inbox`. Default: the one that it is mounted under, as the bridge says. */
  base?: string | undefined
  /**
   * The path that requests have when they get here, where a proxy makes it another than `base`. Default: as the bridge says; of a
   * server that none of them is for, such as Hono, Next.js or Bun, `base`.
   */
  mount?: string | undefined
  /** At least 32 characters, the same in every process that serves the dashboard. Default: random for each process. */
  secret?: string | undefined
  /** Told of what the reader is not: why something failed here. Default: a process warning. */
  onError?: Report | undefined
}

export const DASHBOARD = {
  authorize: optional(callback<Authorize>(), 'none; then dev has to be said'),
  dev: boolean(false),
  redact: optional(callback<Redact>(), 'all of it is shown to who may see bodies'),
  title: optional(name(200), 'oncebox'),
  environment: optional(name(100), 'none'),
  readOnly: boolean(false),
  hosts: optional(checked(checkHosts), 'any'),
  base: { ...MOUNT.base, byDefault: { words: 'as the bridge says' } },
  mount: { ...MOUNT.base, byDefault: { words: 'as the bridge says, else base' } },
  secret: optional(
    checked((where, given: string) => {
      if (typeof given === 'string' && given.length >= 32) return given
      throw invalid(`${where} must have at least 32 characters, such as those of openssl rand -hex 32`)
    }),
    'random for each process',
  ),
  onError: optional(callback<Report>(), 'a process warning, without details'),
}

export type Settings = ReturnType<typeof resolveDashboard>

const WARNING = warning('the dashboard failed, and its reader was told so', 'ONCEBOX_DASHBOARD')

export function resolveDashboard(given: DashboardOptions) {
  const { onError = WARNING, title = 'oncebox', ...options } = resolve('dashboard', given, DASHBOARD)
  if (options.authorize === undefined && !options.dev) {
    const local = 'or dev: true on your own machine'
    throw invalid(
      `dashboard needs authorize, which says who may do what: { authorize: (request) => 'all' | 'read' | null }; ${local}`,
    )
  }
  if (options.dev && options.authorize)
    throw invalid('dashboard: with dev: true, authorize would not be asked; choose one')
  if (options.dev && process.env['NODE_ENV'] === 'production') {
    throw invalid('dashboard: dev: true is for your own machine, and NODE_ENV is production; give it authorize')
  }
  return { ...options, onError, title }
}

function checkHosts(where: string, hosts: readonly string[]): readonly string[] {
  const valid = (host: unknown): boolean => typeof host === 'string' && /^[\w.:[\]-]{1,255}$/.test(host)
  if (Array.isArray(hosts) && hosts.length > 0 && hosts.every(valid))
    return hosts.map((host) => String(host).toLowerCase())
  throw invalid(`${where} must be a list of names such as ['ops.example.com'], without https:// and without a path`)
}

/** What a dashboard uses of a box. */
export interface ShownBox {
  readonly admin: object
  health(): Promise<Health>
}

export interface Inside {
  readonly name: string
  readonly box: ShownBox
  readonly stage: Backstage
}

/** One box, or several by name. */
export function insidesOf(boxes: ShownBox | Readonly<Record<string, ShownBox>>): Inside[] {
  const one = stageOf(boxes)
  if (one) return [{ name: one.runtime.db.schema, box: boxes as ShownBox, stage: one }]
  if (typeof boxes !== 'object' || boxes === null || Object.keys(boxes).length === 0) {
    throw invalid('dashboard takes a box, or boxes by name: dashboard({ orders: box, billing: other }, { authorize })')
  }
  return Object.entries(boxes as Readonly<Record<string, ShownBox>>).map(([key, box]) => {
    const stage = stageOf(box)
    if (!stage || key.length > 200 || key === '') {
      throw invalid(`dashboard: ${JSON.stringify(key)} must be the name of a box, and have one`)
    }
    return { name: key, box, stage }
  })
}

function stageOf(box: unknown): Backstage | undefined {
  const admin = (box as Partial<ShownBox> | null | undefined)?.admin as
    Partial<Record<typeof BACKSTAGE, Backstage>> | undefined
  return admin?.[BACKSTAGE]
}

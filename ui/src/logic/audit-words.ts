/** A record of the audit as a row: who, what, how many, which, why, and what came of it. */
import type { AuditRow } from '../../../src/dashboard/answers/index.js'
import { count } from './format.js'

export interface AuditWords {
  readonly who: string
  /** Where that is known from: the database's login, if nobody said who. */
  readonly whoHint?: string
  readonly action: string
  readonly messages: string
  readonly filter: string
  readonly why: string
  readonly outcome: string
}

const ENDED: Readonly<Record<string, string>> = {
  running: 'Started',
  done: 'Done',
  cancelled: 'Stopped',
  stopped: 'Stopped by itself',
  failed: 'Broke off',
}

/** Of the detail, what is said in columns of its own. */
const SAID = new Set(['filter', 'count', 'of', 'reason', 'state', 'job', 'limit', 'perSecond'])

export function auditWords({ action, by, login, role, detail }: AuditRow): AuditWords {
  const begins = action.endsWith('-started')
  const state = begins ? 'running' : typeof detail['state'] === 'string' ? detail['state'] : 'done'
  return {
    who: by ?? login ?? 'nobody said',
    ...(by === undefined
      ? { whoHint: 'the login of the database' }
      : role !== undefined && { whoHint: `role ${role}` }),
    action: begins ? action.slice(0, -'-started'.length) : action,
    messages: messagesOf(detail, begins),
    filter: filterOf(detail),
    why: typeof detail['reason'] === 'string' ? detail['reason'] : '',
    outcome: ENDED[state] ?? state,
  }
}

/** 612 of 1 204, or a dash for what has no number. */
function messagesOf({ count: done, of }: AuditRow['detail'], begins: boolean): string {
  if (begins && typeof of === 'number') return count(of)
  if (typeof done !== 'number') return '–'
  return typeof of === 'number' && of !== done ? `${count(done)} of ${count(of)}` : count(done)
}

/** The query, or what is named, as a query would have it. */
function filterOf(detail: AuditRow['detail']): string {
  const { filter } = detail
  if (typeof filter === 'string') return filter === '' ? 'all' : filter
  const named = typeof filter === 'object' && filter !== null ? filter : detail
  const isSaid = (name: string): boolean => named === detail && SAID.has(name)
  const parts = Object.entries(named).flatMap(([name, value]) => (isSaid(name) || value === undefined || value === null ? [] : [`${name}:${text(value)}`])) // prettier-ignore
  return parts.join(' ')
}

function text(value: unknown): string {
  if (Array.isArray(value)) return value.map(text).join(',')
  if (typeof value === 'string') return /^[^\s,":]+$/.test(value) ? value : JSON.stringify(value)
  return JSON.stringify(value) ?? ''
}

/** 12 changes on record */
export function auditTitle(records: number, more: boolean): string {
  if (records === 0) return 'Nobody has changed anything yet'
  return `${count(records)}${more ? '+' : ''} ${records === 1 && !more ? 'change' : 'changes'} on record`
}

/** The last one: retry of 612 of 1 204 by ines@acme.example at 14:33. */
export function auditSentence(last: AuditRow, at: string): string {
  const { who, action, messages } = auditWords(last)
  return `The last one: ${action}${messages === '–' ? '' : ` of ${messages}`} by ${who}, at ${at}. Nothing here can be changed or deleted by the dashboard.`
}

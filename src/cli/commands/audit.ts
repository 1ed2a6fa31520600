/** `oncebox audit`: what was done, by whom. */
import type { AuditRecord } from '../../admin/index.js'
import { command } from '../command.js'
import { showTime } from '../output/duration.js'
import type { Text } from '../output/text.js'
import { anything, object, record, string, time } from '../shape.js'
import { PAGE, readPages, tellMore } from '../shared/paging.js'

export const auditLs = command({
  noun: 'audit',
  verb: 'ls',
  summary: 'List what people did, newest first, and what left quarantine by itself.',
  details: ['BY is what they said. ROLE is the database’s own word.'],
  example: 'oncebox audit ls --limit 20',
  options: PAGE,
  connects: true,
  raw: true,
  output: object({
    at: time,
    action: string,
    detail: record(anything),
    'by?': string,
    'role?': string,
    'login?': string,
  }),
  async run({ out, options, signal, connect }) {
    const { box } = await connect()
    const rows: Text[][] = []
    const read = async (page: { limit: number; cursor: string | undefined }) => {
      const { records, cursor } = await box.admin.audit(page)
      return { items: records, cursor }
    }
    const { count, cursor } = await readPages({ options, signal }, read, (records) => {
      if (out.json) for (const one of records) out.document(one)
      else rows.push(...records.map(rowOf))
    })
    const columns = [
      ...[{ title: 'AT' }, { title: 'ACTION' }, { title: 'BY', least: 8 }, { title: 'ROLE', least: 6 }],
      ...[
        { title: 'COUNT', right: true as const },
        { title: 'REASON', least: 8 },
        { title: 'WHAT', least: 10 },
      ],
    ]
    if (rows.length > 0) out.table(columns, rows)
    if (count === 0) out.note('nothing was done yet')
    tellMore(out, cursor)
  },
})

function rowOf({ at, action, by = '', role = '', detail }: AuditRecord): Text[] {
  const { count, reason, ...what } = detail
  const told = [count, reason].map((value) => (value === undefined || value === null ? '' : textOf(value)))
  return [showTime(at), action, by, role, ...told, textOf(what)]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

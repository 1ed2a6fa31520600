/**
 * Growth: what a box does per second as its tables fill up.
 *
 *   npm run bench:growth [-- --parts retained,pending,pinned,processes,keys] [--retained 1000000,10000000]
 *     [--messages 20000] [--repeats 3] [--pinned-minutes 1] [--fill-only] [--json]
 *
 * Each part measures a large box beside a small one, in turn. Ten million retained messages take 6 GB of disk and some minutes
 * to fill, past the front door; `--fill-only` leaves them in the database of `DATABASE_URL` for a later run, which goes on from
 * there. Prints a table, or with `--json` one document; exits 1 if a target is missed.
 */
import { parseArgs } from 'node:util'
import { describeMachine } from './machine.mjs'
import { BUSINESS } from './handlers.mjs'
import { measureKeys } from './growth/keys.mjs'
import { measurePending } from './growth/pending.mjs'
import { measurePinned } from './growth/pinned.mjs'
import { measureProcesses } from './growth/processes.mjs'
import { measureRetained } from './growth/retained.mjs'
import { startServer } from './server.mjs'
import pg from 'pg'

const PARTS = {
  retained: measureRetained,
  pending: measurePending,
  pinned: measurePinned,
  processes: measureProcesses,
  keys: measureKeys,
}

const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: Object.keys(PARTS).join(',') },
    retained: { type: 'string', default: '1000000,10000000' },
    messages: { type: 'string', default: '20000' },
    repeats: { type: 'string', default: '3' },
    'pinned-minutes': { type: 'string', default: '1' },
    'fill-only': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const parts = values.parts.split(',')
for (const part of parts) {
  if (!Object.hasOwn(PARTS, part))
    throw new Error(`there is no part ${part}; there are ${Object.keys(PARTS).join(', ')}`)
}
const options = {
  retained: values.retained.split(',').map(Number),
  messages: Number(values.messages),
  repeats: Number(values.repeats),
  pinnedMs: Number(values['pinned-minutes']) * 60_000,
  fillOnly: values['fill-only'],
  say: (line) => process.stderr.write(`${line}\n`),
}

const server = await startServer()
const admin = new pg.Client({ connectionString: server.url })
await admin.connect()
try {
  await admin.query('drop schema if exists bench cascade')
  await admin.query(BUSINESS)
  const machine = await describeMachine(server)
  const rows = []
  for (const part of parts) rows.push(...(await PARTS[part]({ ...options, server, admin })))
  const report = { command: `npm run bench:growth -- ${process.argv.slice(2).join(' ')}`.trim(), ...machine, rows }
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
  else print(report)
  process.exitCode = rows.some(({ pass }) => pass === false) ? 1 : 0
} finally {
  await admin.query('drop schema if exists bench cascade')
  await admin.end()
  await server.stop()
}

/** A row: what was measured, on the small box and on the large one, their ratio, and what it is to be at least. */
function print({ command, machine, postgres, versions, rows }) {
  console.log(`${machine.cpu}, ${machine.cores} cores, load ${machine.load}; PostgreSQL ${postgres.server_version}, `)
  console.log(`shared_buffers ${postgres.shared_buffers} pages, Node.js ${versions.node}; ${command}\n`)
  for (const { part, what, small, large, unit, ratio, target, pass, note } of rows) {
    const verdict = target === undefined ? '' : `, target ${target}: ${pass ? 'pass' : 'FAIL'}`
    const figures = small === undefined ? `${large} ${unit}` : `${small} → ${large} ${unit}, ratio ${ratio.toFixed(2)}`
    console.log(`${part.padEnd(10)} ${what.padEnd(44)} ${figures}${verdict}${note ? ` (${note})` : ''}`)
  }
}

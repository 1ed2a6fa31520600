/**
 * An idempotent endpoint in a process of its own. DIE: it is killed after the commit, before its client is answered, or in its
 * handler; or the handler holds its transaction until its deadline.
 */
import { createServer } from 'node:http'
import pg from 'pg'
import { createBox } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { emit } from '../../support/child.mjs'

const { DATABASE_URL: connectionString, SCHEMA: schema, DIE: dies } = process.env
const box = createBox({ db: fromPg(new pg.Pool({ connectionString, max: 4 })), schema })
const timeoutMs = dies === 'never' ? 3_000 : undefined
const options = {
  name: 'charges',
  scope: 'shared',
  required: false,
  waitMs: 60_000,
  timeoutMs,
  onError: () => undefined,
}
const charge = idempotent(box, options, async (request, { tx, key, signal }) => {
  emit('running', { key })
  await tx.query(`insert into "${schema}".test_ledger (consumer, id) values ('charges', $1)`, [key ?? 'none'])
  if (dies === 'before') process.kill(process.pid, 'SIGKILL')
  if (dies === 'never') {
    emit('holding')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  return Response.json({ by: process.pid })
})
const server = createServer(
  toNodeListener(async (request) => {
    const response = await charge.fetch(request)
    if (dies === 'after') process.kill(process.pid, 'SIGKILL')
    return response
  }),
)
server.listen(0, '127.0.0.1', () => emit('listening', { port: server.address().port }))

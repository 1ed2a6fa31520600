/** An idempotent endpoint in a process of its own. DIE: it is killed after the commit, before its client is answered. */
import { createServer } from 'node:http'
import pg from 'pg'
import { createBox } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { emit } from '../../support/child.mjs'

const { DATABASE_URL: connectionString, SCHEMA: schema, DIE: dies } = process.env
const box = createBox({ db: fromPg(new pg.Pool({ connectionString, max: 4 })), schema })
const charge = idempotent(box, { name: 'charges', scope: 'shared', waitMs: 60_000 }, async (request, { tx, key }) => {
  emit('running', { key })
  await tx.query(`insert into "${schema}".test_ledger (consumer, id) values ('charges', $1)`, [key])
  if (dies === 'before') process.kill(process.pid, 'SIGKILL')
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

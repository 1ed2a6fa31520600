/** The same by hand: claims of 100, one transaction for each, its statements in one packet, 4 connections. See ../limit.mjs. */
import pg from 'pg'
import { Limit } from '../limit.mjs'

export async function open({ url, handled }) {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  // Its statements name a schema; whoever counts does not.
  await admin.query(`do $$ begin
    if to_regclass('bench.effect') is null then
      create schema bench; alter table effect set schema bench; create view effect as select * from bench.effect;
    end if; end $$`)
  await admin.end()
  const limit = new Limit(url)
  await limit.open(4)
  let total = 0
  return {
    async store(messages) {
      total = messages.length
      const list = messages.map(({ id, data }) => ({ id, source: 'shop', type: 'order.placed', data }))
      await limit.receive(list, { inFlight: 1 })
    },
    async start() {
      await limit.drainTogether(4, total, { claim: 100, group: 100 })
      handled(total)
    },
    stop: () => limit.close(),
  }
}

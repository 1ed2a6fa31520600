/** Knex: see ../subject.ts. */
import { fromKnex } from 'oncebox/knex'
import { loader } from './load.mjs'

const silent = () => {}

export async function open({ max, name, ...place }, from) {
  const { default: knex } = await (await loader(from))('knex')
  const db = knex({
    client: 'pg',
    connection: { ...place, application_name: name },
    pool: { min: 0, max },
    log: { warn: silent, error: silent, deprecate: silent, debug: silent },
  })
  return {
    driver: fromKnex(db),
    root: db,
    // A builder is sent when it is awaited.
    native: async (tx, text) => await tx.raw(text),
    insert: async (tx, row) => await tx('effect').insert(row),
    own: (work) => db.transaction(work),
    nested: (tx, work) => tx.transaction(work),
    close: () => db.destroy(),
  }
}

/** MikroORM: see ../subject.ts. Its packages are those of `from`: package.json has none that is promised. */
import { fromMikroOrm } from 'oncebox/mikro-orm'
import { loader } from './load.mjs'

export async function open({ name, host, port, user, database, max }, from) {
  const { MikroORM, RequestContext, defineEntity, p } = await (await loader(from))('@mikro-orm/postgresql')
  const Effect = defineEntity({
    name: 'Effect',
    tableName: 'effect',
    properties: {
      n: p.bigint().primary(),
      consumer: p.text().nullable(),
      key: p.text().nullable(),
      id: p.text(),
      seq: p.integer().nullable(),
      attempt: p.integer(),
      pid: p.integer(),
    },
  })
  const orm = await MikroORM.init({
    ...{ host, port, user, dbName: database, entities: [Effect], pool: { min: 0, max } },
    driverOptions: { application_name: name, max },
    schemaGenerator: { ignoreSchema: ['oncebox', 'bench_clients'] },
    connect: false,
    logger: () => {},
  })
  return {
    driver: fromMikroOrm(orm),
    root: orm.em,
    native: (tx, text) => tx.getConnection().execute(text, [], 'all', tx.getTransactionContext()),
    insert: async (tx, row) => {
      tx.persist(tx.create(Effect, row))
      await tx.flush()
    },
    own: (work) => orm.em.fork().transactional(work),
    nested: (tx, work) => tx.transactional(work),
    close: () => orm.close(true),
    // For what is tested of MikroORM alone.
    orm,
    RequestContext,
    Effect,
  }
}

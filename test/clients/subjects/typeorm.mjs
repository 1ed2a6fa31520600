/** TypeORM: see ../subject.ts. */
import { fromTypeOrm } from 'oncebox/typeorm'
import { loader } from './load.mjs'

const COLUMNS = {
  n: { type: 'bigint', primary: true, generated: 'increment' },
  consumer: { type: 'text' },
  key: { type: 'text', nullable: true },
  id: { type: 'text' },
  seq: { type: 'int', nullable: true },
  attempt: { type: 'int' },
  pid: { type: 'int' },
}

export async function open({ host, port, user, database, max, name }, from) {
  const { DataSource, EntitySchema } = (await (await loader(from))('typeorm')).default
  const Effect = new EntitySchema({ name: 'effect', columns: COLUMNS })
  const dataSource = new DataSource({
    type: 'postgres',
    host,
    port,
    username: user,
    database,
    applicationName: name,
    extra: { max },
    entities: [Effect],
    poolErrorHandler: () => {},
  })
  await initialize(dataSource, { host, port, user, database, max })
  return {
    driver: fromTypeOrm(dataSource),
    root: dataSource.manager,
    native: (tx, text) => tx.query(text),
    insert: (tx, row) => tx.insert(Effect, row),
    own: (work) => dataSource.transaction(work),
    nested: (tx, work) => tx.transaction(work),
    async idle() {
      const runner = dataSource.createQueryRunner()
      await runner.connect()
      return { tx: runner.manager, close: () => runner.release() }
    },
    close: () => (dataSource.isInitialized ? dataSource.destroy() : dataSource.driver.master.end()),
  }
}

/** It connects at once. The tests have servers that are away, and expect a pool that is empty. */
async function initialize(dataSource, place) {
  try {
    await dataSource.initialize()
    const client = await dataSource.driver.master.connect()
    client.release(true)
  } catch {
    const { Pool } = dataSource.driver.postgres
    Object.assign(dataSource, { isInitialized: true })
    Object.assign(dataSource.driver, { master: new Pool(place) })
    dataSource.driver.master.on('error', () => {})
  }
}

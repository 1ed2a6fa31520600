/** Sequelize 6: see ../subject.ts. */
import { fromSequelize } from 'oncebox/sequelize'
import { loader } from './load.mjs'

export async function open({ host, port, user, database, max, name }, from) {
  const { Sequelize, DataTypes } = (await (await loader(from))('sequelize')).default
  const sequelize = new Sequelize(database, user, undefined, {
    ...{ dialect: 'postgres', host, port, logging: false, pool: { max, min: 0 } },
    dialectOptions: { application_name: name },
  })
  const columns = {
    n: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
    consumer: DataTypes.TEXT,
    key: DataTypes.TEXT,
    id: DataTypes.TEXT,
    seq: DataTypes.INTEGER,
    attempt: DataTypes.INTEGER,
    pid: DataTypes.INTEGER,
  }
  const Effect = sequelize.define('effect', columns, { tableName: 'effect', timestamps: false })
  return {
    driver: fromSequelize(sequelize),
    root: sequelize,
    native: (tx, text) => sequelize.query(text, { transaction: tx }),
    insert: (tx, row) => Effect.create(row, { transaction: tx }),
    own: (work) => sequelize.transaction(work),
    nested: (tx, work) => sequelize.transaction({ transaction: tx }, work),
    close: () => sequelize.close(),
  }
}

/** How a box is opened on each client, as it is written into a project. */
import path from 'node:path'
import type { Client, Project } from './look.js'

interface Opening {
  readonly imports: readonly string[]
  /** Makes `db`, the driver. */
  readonly code: readonly string[]
}

const URL = `process.env['DATABASE_URL']`
const POOL = `const pool = new pg.Pool({ connectionString: ${URL} })`
const PG = `import pg from 'pg'`

export function openingOf(project: Project): Opening {
  return OPENINGS[project.client](project)
}

const OPENINGS: Readonly<Record<Client, (project: Project) => Opening>> = {
  pg: () => ({
    imports: [PG, `import { fromPg } from 'oncebox/pg'`],
    code: [POOL, `const db = fromPg(pool)`],
  }),
  postgres: () => ({
    imports: [`import postgres from 'postgres'`, `import { fromPostgres } from 'oncebox/postgres'`],
    code: [`const sql = postgres(${URL} ?? '')`, `const db = fromPostgres(sql)`],
  }),
  pglite: () => ({
    imports: [`import { PGlite } from '@electric-sql/pglite'`, `import { fromPglite } from 'oncebox/pglite'`],
    code: [
      `const pglite = await PGlite.create(process.env['PGLITE_DIR'] ?? '.pglite')`,
      `const db = fromPglite(pglite)`,
    ],
  }),
  drizzle: ({ has }) =>
    has('pg') || !has('postgres')
      ? {
          imports: [`import { drizzle } from 'drizzle-orm/node-postgres'`, PG, `import { fromDrizzle } from 'oncebox/drizzle'`], // prettier-ignore
          code: [POOL, `const db = fromDrizzle(drizzle({ client: pool }))`],
        }
      : {
          imports: [`import { drizzle } from 'drizzle-orm/postgres-js'`, `import postgres from 'postgres'`, `import { fromDrizzle } from 'oncebox/drizzle'`], // prettier-ignore
          code: [`const sql = postgres(${URL} ?? '')`, `const db = fromDrizzle(drizzle({ client: sql }))`],
        },
  kysely: ({ typescript }) => ({
    imports: [`import { Kysely, PostgresDialect } from 'kysely'`, PG, `import { fromKysely } from 'oncebox/kysely'`],
    code: [
      POOL,
      ...(typescript ? ['// Your tables go here.', 'type Tables = Record<never, never>'] : []),
      `const kysely = new Kysely${typescript ? '<Tables>' : ''}({ dialect: new PostgresDialect({ pool }) })`,
      `const db = fromKysely(kysely, pool)`,
    ],
  }),
  knex: () => ({
    imports: [`import knexBuilder from 'knex'`, `import { fromKnex } from 'oncebox/knex'`],
    code: [`const knex = knexBuilder({ client: 'pg', connection: ${URL} ?? '' })`, `const db = fromKnex(knex)`],
  }),
  typeorm: () => ({
    imports: [`import { DataSource } from 'typeorm'`, `import { fromTypeOrm } from 'oncebox/typeorm'`],
    code: [
      `const dataSource = new DataSource({ type: 'postgres', url: ${URL} ?? '', entities: [] })`,
      `await dataSource.initialize()`,
      `const db = fromTypeOrm(dataSource)`,
    ],
  }),
  prisma: ({ prismaClient, folder, importsTs, typescript }) => ({
    imports: [
      `import { PrismaPg } from '@prisma/adapter-pg'`,
      PG,
      `import { fromPrisma } from 'oncebox/prisma'`,
      `import { PrismaClient } from '${prismaImport(prismaClient, folder, typescript && importsTs)}'`,
    ],
    code: [POOL, `const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })`, `const db = fromPrisma(prisma, pool)`], // prettier-ignore
  }),
  'mikro-orm': () => ({
    imports: [`import { MikroORM } from '@mikro-orm/postgresql'`, `import { fromMikroOrm } from 'oncebox/mikro-orm'`],
    code: [
      `const orm = await MikroORM.init({`,
      `  clientUrl: ${URL} ?? '',`,
      `  entities: [],`,
      `  // The schema generator would drop the tables of oncebox.`,
      `  schemaGenerator: { ignoreSchema: ['oncebox'] },`,
      `  discovery: { warnWhenNoEntities: false },`,
      `})`,
      `const db = fromMikroOrm(orm)`,
    ],
  }),
  sequelize: () => ({
    imports: [`import { Sequelize } from 'sequelize'`, `import { fromSequelize } from 'oncebox/sequelize'`],
    code: [
      `const sequelize = new Sequelize(${URL} ?? '', { dialect: 'postgres', logging: false })`,
      `const db = fromSequelize(sequelize)`,
    ],
  }),
}

function prismaImport(client: string | undefined, folder: string, importsTs: boolean): string {
  if (client === undefined) return '@prisma/client'
  return `${path.posix.relative(folder, client)}/client.${importsTs ? 'ts' : 'js'}`
}

/** Packages that a client needs beside itself. */
export function neededBy({ client, has, typescript }: Project): { dependencies: string[]; devDependencies: string[] } {
  const dependencies: string[] = []
  if (client === 'drizzle' && !has('pg') && !has('postgres')) dependencies.push('pg')
  if (['kysely', 'knex', 'typeorm', 'sequelize', 'prisma', 'pg'].includes(client) && !has('pg')) dependencies.push('pg')
  if (client === 'prisma' && !has('@prisma/adapter-pg')) dependencies.push('@prisma/adapter-pg')
  const importsPg =
    ['pg', 'kysely', 'prisma'].includes(client) || (client === 'drizzle' && (has('pg') || !has('postgres')))
  return { dependencies, devDependencies: typescript && importsPg && !has('@types/pg') ? ['@types/pg'] : [] }
}

/** Prisma on @prisma/adapter-pg: see ../subject.ts. Its client is generated for one version: `from` has one of its own. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { fromPrisma } from 'oncebox/prisma'
import { loader } from './load.mjs'

const GENERATED = new URL('../../../examples/prisma/client/client.js', import.meta.url)

export async function open({ name, ...options }, from) {
  const load = await loader(from)
  const { PrismaPg } = await load('@prisma/adapter-pg')
  // The adapter knows a pool by the class of its own copy.
  const { default: pg } = await load('pg')
  const { PrismaClient } = await import(from ? pathToFileURL(path.join(from, 'client/client.js')).href : GENERATED.href)
  const pool = new pg.Pool({ ...options, application_name: name })
  pool.on('error', () => {})
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
  return {
    driver: fromPrisma(prisma, pool),
    root: prisma,
    native: async (tx, text) => await tx.$executeRawUnsafe(text),
    insert: (tx, data) => tx.effect.create({ data }),
    own: (work) => prisma.$transaction(work),
    nested: (tx, work) => tx.$transaction(work),
    async close() {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

/** Drizzle on PGlite: see ../subject.ts. */
import { PGlite } from '@electric-sql/pglite'
import { openDrizzle } from './drizzle.mjs'

// One session for everybody, in this process, without a network; it has no notices either.
export const capabilities = { parallel: false, commitWarnings: false, faults: false }

let db

export async function open(_, from) {
  db ??= await PGlite.create()
  const opened = await openDrizzle(db, 'pglite', from)
  return {
    ...opened,
    // PGlite takes several commands by exec() alone, which Drizzle never calls.
    native: async (tx, text) =>
      text.includes(';') ? await tx.session.client.exec(text) : await opened.native(tx, text),
    close: async () => {},
  }
}

/** postgres.js itself, for the benchmark of clients: see ../subject.ts. */
import postgres from 'postgres'
import { fromPostgres } from 'oncebox/postgres'

export const capabilities = { commitWarnings: false }

export async function open({ name, host, port, user, database, max }) {
  const sql = postgres({
    ...{ host, port, user, database, max },
    connection: { application_name: name },
    onnotice: () => {},
    fetch_types: false,
  })
  return {
    driver: fromPostgres(sql),
    root: sql,
    native: (tx, text) => tx.unsafe(text),
    insert: (tx, { consumer, key, id, seq, attempt, pid }) =>
      tx`insert into effect (consumer, key, id, seq, attempt, pid) values (${consumer}, ${key}, ${id}, ${seq}, ${attempt}, ${pid})`,
    own: (work) => sql.begin(work),
    nested: (tx, work) => tx.savepoint(work),
    close: () => sql.end({ timeout: 0.1 }),
  }
}

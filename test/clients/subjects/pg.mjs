/** pg itself, as the yardstick and as the model of a subject: see ../subject.ts. */
import pg from 'pg'
import { fromPg } from 'oncebox/pg'

const INSERT = {
  name: 'effect',
  text: 'insert into effect (consumer, key, id, seq, attempt, pid) values ($1, $2, $3, $4, $5, $6)',
}

export async function open({ name, ...options }) {
  const pool = new pg.Pool({ ...options, application_name: name })
  pool.on('error', () => {})
  return {
    driver: fromPg(pool),
    root: pool,
    native: (tx, text) => tx.query(text),
    insert: (tx, { consumer, key, id, seq, attempt, pid }) =>
      tx.query({ ...INSERT, values: [consumer, key, id, seq, attempt, pid] }),
    async own(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await work(client)
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    async nested(tx, work) {
      await tx.query('savepoint nested')
      try {
        await work(tx)
        await tx.query('release savepoint nested')
      } catch (error) {
        await tx.query('rollback to savepoint nested')
        throw error
      }
    },
    close: () => pool.end(),
  }
}

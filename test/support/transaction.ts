/** A transaction of the caller's own, as an application writes it: BEGIN, work, COMMIT; ROLLBACK if it throws. */
import type pg from 'pg'

export async function inTransaction<R>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<R>,
  begin = 'begin',
): Promise<R> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

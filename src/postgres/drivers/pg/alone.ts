/** Statements that commit on their own. */
import type { StatementOptions } from '../../driver.js'
import { silent } from '../../errors.js'
import { ignore } from '../watch.js'
import { hangUp, unlessSilent, unlessWithin } from './cancel.js'
import { type Answer, ask, type Client, type Statement } from './client.js'
import { Session } from './session.js'
import { heedWarnings } from './warnings.js'

/** Runs a statement that commits on its own. One that gets no answer in time takes its connection with it. */
export async function runOn(client: Client, statement: Statement, options: StatementOptions): Promise<Answer> {
  const { settings } = options
  const answered = limited(client, options)
  try {
    if (settings !== undefined) return await askInside(client, statement, settings)
    return await heedWarnings(client, () => ask(client, statement))
  } finally {
    answered()
  }
}

/** A heartbeat has a short answer, and its lease does not wait: the answer to a BEGIN before it must not earn it more time. */
function limited(client: Client, { limitMs, urgent }: StatementOptions): () => void {
  if (limitMs === undefined) return ignore
  const late = (): void => hangUp(client, silent(limitMs))
  return urgent ? unlessWithin(limitMs, late) : unlessSilent(limitMs, client, late)
}

/** In a transaction of its own, whose commands share a trip where pg pipelines. */
async function askInside(client: Client, statement: Statement, settings: string): Promise<Answer> {
  const session = new Session(client, 'read committed', settings)
  try {
    const answer = session.send(statement)
    answer.catch(ignore)
    if (!session.pipelines) await answer
    await session.commit()
    return await answer
  } catch (error) {
    await session.rollback()
    throw session.beginError ?? error
  } finally {
    session.detach()
  }
}

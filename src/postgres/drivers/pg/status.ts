/**
 * Is this client inside a transaction? pg 8.2x tells; older versions are overheard; the native client is asked.
 */
import { sharedByCopies } from '../../../copies.js'
import type { Status } from '../watch.js'
import { ask, type Client } from './client.js'

const MEANING: Readonly<Record<string, Status>> = { T: 'in transaction', E: 'aborted', I: 'idle' }

/** The status by the last answer, or undefined if an answer is under way or the client does not tell. */
export function knownStatus(client: Client): Status | undefined {
  if (client._connected === false) return 'idle'
  // After an error, pg rejects before it reads the status that follows: what it has then is stale.
  if (client.readyForQuery !== true) return undefined
  const letter = client.getTransactionStatus ? (client.getTransactionStatus() ?? 'I') : overheard(client)
  return letter === undefined ? undefined : MEANING[letter]
}

export async function transactionStatus(client: Client): Promise<Status> {
  const known = knownStatus(client)
  if (known !== undefined) return known
  // An empty statement is answered in any state, even in an aborted transaction, and the status comes with it.
  await ask(client, { text: '' })
  return knownStatus(client) ?? (await probe(client))
}

const letters = sharedByCopies('status-letters', () => new WeakMap<Client, string | undefined>())

/** For pg without `getTransactionStatus`: listens to the status that ends every answer. */
function overheard(client: Client): string | undefined {
  if (!letters.has(client) && client.connection?.on) {
    letters.set(client, undefined)
    client.connection.on('readyForQuery', (message: { status?: string }) => letters.set(client, message.status))
  }
  return letters.get(client)
}

/** For clients that hide the protocol: a savepoint is refused outside a transaction, with 25P01. */
async function probe(client: Client): Promise<Status> {
  try {
    await ask(client, { text: 'SAVEPOINT oncebox_probe; RELEASE SAVEPOINT oncebox_probe' })
    return 'in transaction'
  } catch (error) {
    const code = (error as { code?: unknown }).code
    if (code === '25P01') return 'idle'
    if (code === '25P02') return 'aborted'
    throw error
  }
}

/** Begins to overhear, so that the first question about an old client needs no trip of its own later. */
export function watchStatus(client: Client): void {
  if (!client.getTransactionStatus) overheard(client)
}

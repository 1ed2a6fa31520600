/**
 * Stops the statement that runs on a connection about to be closed. A backend does not notice that its client is
 * gone while it works or waits for a lock, so it would hold its own locks for as long.
 * By the protocol's cancel request, as libpq does: unlike `pg_terminate_backend` it also works through PgBouncer.
 */
import { connect } from 'node:net'
import { ignore } from '../watch.js'
import type { Client } from './client.js'

const CANCEL_REQUEST = 80877102

export function cancelStatement({ host, port, processID, secretKey }: Client): void {
  if (!host || !port || !processID || !secretKey) return
  const request = Buffer.alloc(16)
  request.writeInt32BE(16, 0)
  request.writeInt32BE(CANCEL_REQUEST, 4)
  request.writeInt32BE(processID, 8)
  request.writeInt32BE(secretKey, 12)
  // Best effort: behind a tunnel the address may not be reachable, and then the statement runs to its end.
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
  socket.on('error', ignore)
  socket.setTimeout(5_000, () => socket.destroy())
  socket.unref()
  socket.end(request)
}

/**
 * Ends a connection at once, from this side: what is unanswered on it rejects with `reason`. Unlike `end`, which waits
 * for the other side to agree.
 */
export function hangUp(client: Client, reason: Error): void {
  cancelStatement(client)
  client.connection?.stream?.destroy?.(reason)
}

/** Calls `late` unless it is told in time. What has arrived meanwhile is read first: this process may have been busy. */
export function unlessWithin(ms: number, late: () => void): () => void {
  let reading: NodeJS.Immediate | undefined
  const timer = setTimeout(() => (reading = setImmediate(late)), ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(reading)
  }
}

/** The same, but while more arrives, a large answer is on its way, and the time begins anew. */
export function unlessSilent(ms: number, client: Client, late: () => void): () => void {
  let heard = bytesFrom(client)
  const look = (): void => {
    if (heard === bytesFrom(client)) return late()
    heard = bytesFrom(client)
    answered = unlessWithin(ms, look)
  }
  let answered = unlessWithin(ms, look)
  return () => answered()
}

/** How much the server has sent so far; none if the client does not say. */
function bytesFrom({ connection }: Client): number {
  return connection?.stream?.bytesRead ?? 0
}

/**
 * Losses: how often a message lost its connection while it ran. A database that goes away is nobody's fault, but a handler
 * that kills its own connection every time must not be tried for ever, nor take its neighbours with it each time.
 */
import { causes } from '../failure.js'
import { sqlState } from '../postgres/errors.js'
import { SERVER } from '../postgres/sql/settle.js'
import type { HeldMessage } from './held.js'
import type { Worker } from './run.js'

export interface Loss {
  /** Losses in a row, on the same server. */
  readonly times: number
  /** When the server was started on which it ran last. */
  readonly server?: string
}

/** After so many in a row, the message itself is held responsible. */
const MAX_LOSSES = 3
const MAX_REMEMBERED = 10_000

function keyOf({ source, id }: HeldMessage): string {
  return JSON.stringify([source, id])
}

/** It was running, with others, when the connection was lost: next time it runs alone. */
export function noteLoss({ losses }: Worker, message: HeldMessage): void {
  if (losses.has(keyOf(message))) return
  if (losses.size >= MAX_REMEMBERED) losses.clear()
  losses.set(keyOf(message), { times: 1 })
}

export function hasLost({ losses }: Worker, message: HeldMessage): boolean {
  return losses.size > 0 && losses.has(keyOf(message))
}

export function forgetLoss({ losses }: Worker, message: HeldMessage): void {
  if (losses.size > 0) losses.delete(keyOf(message))
}

/** Before it runs again: if the server is another one by now, its losses were the server's. */
export async function noteServer(worker: Worker, message: HeldMessage): Promise<void> {
  const { losses } = worker
  const before = losses.get(keyOf(message))
  if (!before) return
  const server = await readServer(worker)
  const same = before.server === undefined || before.server === server
  losses.set(keyOf(message), { times: same ? before.times : 1, server })
}

/** It ran alone and lost its connection with this error: is it responsible by now? */
export async function isToBlame(worker: Worker, message: HeldMessage, error: unknown): Promise<boolean> {
  const { losses } = worker
  const key = keyOf(message)
  const before = losses.get(key) ?? { times: 0 }
  noteLoss(worker, message)
  // 57P02: another process of the server crashed, and the server told all others to end.
  for (const cause of causes(error)) if (sqlState(cause) === '57P02') return false
  // A server that is away, or was started anew, has ended every connection.
  const server = await readServer(worker).catch(() => undefined)
  if (server === undefined || (before.server !== undefined && before.server !== server)) return false
  const times = before.times + 1
  if (times >= MAX_LOSSES) return losses.delete(key)
  losses.set(key, { times, server })
  return false
}

async function readServer({ runtime }: Worker): Promise<string> {
  const [row] = await runtime.db.run(SERVER, null)
  return row!.started
}

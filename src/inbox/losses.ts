/**
 * Losses: how often a message lost its connection while it ran. A database that goes away is nobody's fault, but a handler
 * that kills its own connection every time must not be tried for ever, nor take its neighbours with it each time.
 */
import type { ClaimedMessage } from './claim.js'
import type { Worker } from './running.js'

/** After so many in a row, the message itself is held responsible. */
const MAX_LOSSES = 3
const MAX_REMEMBERED = 10_000

function keyOf({ source, id }: ClaimedMessage): string {
  return JSON.stringify([source, id])
}

/** It was running, with others, when the connection was lost: next time it runs alone. */
export function noteLoss({ losses }: Worker, message: ClaimedMessage): void {
  if (losses.has(keyOf(message))) return
  if (losses.size >= MAX_REMEMBERED) losses.clear()
  losses.set(keyOf(message), 1)
}

export function hasLost({ losses }: Worker, message: ClaimedMessage): boolean {
  return losses.size > 0 && losses.has(keyOf(message))
}

export function forgetLoss({ losses }: Worker, message: ClaimedMessage): void {
  if (losses.size > 0) losses.delete(keyOf(message))
}

/** It ran alone and lost its connection: is it responsible by now? */
export function isToBlame(worker: Worker, message: ClaimedMessage): boolean {
  const { losses } = worker
  const key = keyOf(message)
  const times = (losses.get(key) ?? 0) + 1
  if (times >= MAX_LOSSES) return losses.delete(key)
  noteLoss(worker, message)
  losses.set(key, times)
  return false
}

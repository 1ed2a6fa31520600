/** Waits for so long, or until Ctrl-C. */
import { setTimeout as elapsed } from 'node:timers/promises'

export async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  await elapsed(ms, undefined, { signal }).catch(() => undefined)
}

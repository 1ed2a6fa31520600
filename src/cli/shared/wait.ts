/** Waiting, until Ctrl-C at the latest. */
import { setTimeout as elapsed } from 'node:timers/promises'

export async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  await elapsed(ms, undefined, { signal }).catch(() => undefined)
}

/** Resolves at Ctrl-C. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

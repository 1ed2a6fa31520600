export interface WaitOptions {
  /** Default 60 000: a busy machine is no failure. */
  timeoutMs?: number
  /** Default 20. */
  everyMs?: number
  /** What was waited for, as the error says it: "the message to be handled". */
  what?: string
}

/** Asks again and again until the condition answers something truthy, and answers that. Tests never sleep for a fixed time. */
export async function waitUntil<T>(condition: () => T | Promise<T>, options: WaitOptions = {}): Promise<Truthy<T>> {
  const { timeoutMs = 60_000, everyMs = 20, what = condition.toString() } = options
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await condition()
    if (answer) return answer as Truthy<T>
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>

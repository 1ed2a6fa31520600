/**
 * Suspects: messages whose last worker died while it held them, perhaps because of one of them. In a process one of them
 * runs at a time, whichever consumer it belongs to: if the process dies then, the message that killed it is known. The others wait in line, uncounted, with
 * their leases kept. The line is global, so that two copies of the package in one process stand in the same one.
 */
import { sharedByCopies } from '../copies.js'
import type { Abort } from '../worker/abort.js'

interface Line {
  taken: boolean
  readonly waiting: (() => void)[]
}

const line = sharedByCopies('suspects', (): Line => ({ taken: false, waiting: [] }))

/** Waits for a turn to run a suspect, first come, first served. Answers with a function that ends it. */
export async function suspectTurn(abort: Abort): Promise<() => void> {
  if (line.taken) await wait(abort)
  line.taken = true
  let ended = false
  return () => {
    if (ended) return
    ended = true
    const next = line.waiting.shift()
    // The line stays taken: a suspect that comes in between must not get ahead of those that wait.
    if (next) next()
    else line.taken = false
  }
}

function wait(abort: Abort): Promise<void> {
  return new Promise((resolve, reject) => {
    if (abort.aborted) return reject(abort.aborted)
    const go = (): void => {
      forget()
      resolve()
    }
    const forget = abort.onAbort((reason) => {
      line.waiting.splice(line.waiting.indexOf(go), 1)
      forget()
      reject(reason)
    })
    line.waiting.push(go)
  })
}

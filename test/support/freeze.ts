/** Stops a process that is not a child of the tests in its tracks, as a machine that hangs would. */
import { readdirSync, readFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { waitUntil } from './wait.js'

/** Resolves when it has stopped: a signal is only sent, and a server with several threads may answer after it. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await waitUntil(() => threadsOf(pid).every((state) => state === 'T'), { what: `process ${pid} to stop` })
}

export function unfreeze(pid: number): void {
  process.kill(pid, 'SIGCONT')
}

/** The state of each thread; where there is no /proc, of the process. */
function threadsOf(pid: number): string[] {
  if (process.platform !== 'linux')
    return [execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' })[0]!]
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
    // The name before it is in brackets, and may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2)[0]!
  })
}

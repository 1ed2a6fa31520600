/**
 * CPU time per message, of this process and of our server's (Linux alone). On a machine that others use too it says more
 * than the rate does.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** Begins to watch; answers with a function that gives µs per message so far. */
export function watchCpu(serverPid) {
  const server = serverNs(serverPid)
  const own = process.cpuUsage()
  return (messages) => {
    const { user, system } = process.cpuUsage(own)
    return { node: (user + system) / messages, postgres: (serverNs(serverPid) - server) / 1_000 / messages }
  }
}

/** Of the processes that live now: connections stay open during a measurement. */
function serverNs(pid) {
  if (pid === undefined) return NaN
  let total = 0
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${entry}/stat`, 'latin1'))
      if (Number(parent) !== pid) continue
      total += Number(readFileSync(`/proc/${entry}/schedstat`, 'latin1').split(' ')[0])
    } catch {
      // It has ended in between.
    }
  }
  return total
}

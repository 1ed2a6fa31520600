/**
 * CPU time per message, of this process and of our server's (Linux alone). On a machine that others use too it says more
 * than the rate does.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** Begins to watch; answers with a function that gives µs per message so far. */
export function watchCpu(serverPid) {
  const server = serverUs(serverPid)
  const own = process.cpuUsage()
  return (messages) => {
    const { user, system } = process.cpuUsage(own)
    return { node: (user + system) / messages, postgres: server() / messages }
  }
}

/** The same for the server alone: µs so far. NaN if it is not ours. */
export function serverUs(serverPid) {
  const before = serverNs(serverPid)
  return () => {
    let spent = serverPid === undefined ? NaN : 0
    // Those that have ended are lost; connections stay open during a measurement.
    for (const [pid, ns] of serverNs(serverPid)) spent += ns - (before.get(pid) ?? 0)
    return spent / 1_000
  }
}

/** CPU time of each process of the server. */
function serverNs(serverPid) {
  const spent = new Map()
  if (serverPid === undefined) return spent
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))
      if (Number(parent) !== serverPid) continue
      spent.set(pid, Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0]))
    } catch {
      // It has ended in between.
    }
  }
  return spent
}

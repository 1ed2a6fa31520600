/** Ports for private servers, on the loopback address. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the range that outgoing connections are given, so that nobody takes the port while its server is down. */
const [FIRST, END] = [20_000, 32_000]

/** So many different ones: each is held until all are found. */
export async function freePorts(count) {
  const probes = []
  while (probes.length < count) {
    const probe = await listen(randomInt(FIRST, END))
    if (probe) probes.push(probe)
  }
  const ports = probes.map((probe) => probe.address().port)
  await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))))
  return ports
}

export async function freePort() {
  const [port] = await freePorts(1)
  return port
}

/** Two of them, so far apart. */
export async function freePortsApart(distance) {
  for (;;) {
    const first = randomInt(FIRST, END - distance)
    const probes = [await listen(first), await listen(first + distance)]
    await Promise.all(probes.map((probe) => probe && new Promise((resolve) => probe.close(resolve))))
    if (probes.every(Boolean)) return [first, first + distance]
  }
}

/** Undefined if somebody else has it. */
function listen(port) {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(undefined))
    probe.listen(port, '127.0.0.1', () => resolve(probe))
  })
}

/** Loopback: addresses and names of this machine. */

export function isLoopback(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:/, '')
  return plain === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(plain)
}

/** As a Host header has it: with a port, perhaps, and brackets around an address of IPv6. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/:\d+$/, '')
  return name === 'localhost' || name === '[::1]' || isLoopback(name)
}

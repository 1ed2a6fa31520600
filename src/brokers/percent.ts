/** Values of headers in percent-encoding: the HTTP binding of CloudEvents, which NATS has too. */

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The HTTP binding, 3.1.3.2: space, double quote, percent and everything but printable ASCII. */
export function encodeHeader(value: string): string {
  return value
    .toWellFormed()
    .replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
      [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
    )
}

/** Undefined if the bytes are not UTF-8, which must be refused. */
export function decodeHeader(value: string): string | undefined {
  const unquoted = /^"(.*)"$/s.test(value) ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value
  if (!unquoted.includes('%')) return unquoted
  const bytes: Uint8Array[] = []
  for (const part of unquoted.split(/((?:%[0-9a-f]{2})+)/i)) {
    const encoded = /^%[0-9a-f]{2}/i.test(part)
    bytes.push(encoded ? Buffer.from(part.replaceAll('%', ''), 'hex') : Buffer.from(part))
  }
  try {
    return utf8.decode(Buffer.concat(bytes))
  } catch {
    return undefined
  }
}

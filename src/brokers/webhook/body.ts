/** Bodies, read no further than they may be. */

export type Read = { readonly bytes: Uint8Array } | { readonly problem: 'too-large' | 'broken' }

/** Reads a body while it is not larger than allowed. Whatever Content-Length says, the bytes are counted. */
export async function readBody(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Read> {
  if (body === null) return { bytes: new Uint8Array() }
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { bytes: Buffer.concat(chunks, size) }
      size += value.byteLength
      if (size > maxBytes) {
        // Not waited for: the other end may never come to an end.
        reader.cancel().catch(() => undefined)
        return { problem: 'too-large' }
      }
      chunks.push(value)
    }
  } catch {
    return { problem: 'broken' }
  }
}

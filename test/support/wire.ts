/** As much of PostgreSQL's wire protocol as the proxy needs: where messages begin, and which one carries which statement. */

export interface WireMessage {
  /** The protocol's letter, or `startup` (also a cancel request) and `ssl` (also a GSS request), which have none. */
  type: string
  /** All of it, with its header. */
  bytes: Buffer
}

const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104

/** Cuts a stream into messages. A client's begins with messages that have no type letter. */
export class MessageReader {
  #phase: 'startup' | 'messages'
  #chunks: Buffer[] = []
  #length = 0

  constructor(phase: 'startup' | 'messages') {
    this.#phase = phase
  }

  *read(chunk: Buffer): Generator<WireMessage> {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    for (;;) {
      const lengthAt = this.#phase === 'startup' ? 0 : 1
      const header = this.#peek(lengthAt + 4)
      if (!header) return
      const bytes = this.#take(lengthAt + header.readInt32BE(lengthAt))
      if (!bytes) return
      yield { type: this.#type(bytes), bytes }
    }
  }

  #type(bytes: Buffer): string {
    if (this.#phase === 'messages') return String.fromCharCode(bytes[0] ?? 0)
    const code = bytes.readInt32BE(4)
    if (code === SSL_REQUEST || code === GSS_REQUEST) return 'ssl'
    this.#phase = 'messages'
    return 'startup'
  }

  #peek(length: number): Buffer | undefined {
    if (this.#length < length) return undefined
    if ((this.#chunks[0]?.length ?? 0) < length) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0]
  }

  /** Large messages are put together once, when their last byte is there. */
  #take(length: number): Buffer | undefined {
    const first = this.#length < length ? undefined : this.#peek(length)
    if (!first) return undefined
    this.#length -= length
    if (first.length === length) this.#chunks.shift()
    else this.#chunks[0] = first.subarray(length)
    return first.subarray(0, length)
  }
}

/** Says which statement a client's message runs: the text of a simple query, or what an Execute was prepared from. */
export class StatementReader {
  readonly #prepared = new Map<string, string>()
  readonly #portals = new Map<string, string>()

  read({ type, bytes }: WireMessage): string | undefined {
    const [first = '', second = ''] = 'QPBEC'.includes(type) ? strings(bytes) : []
    if (type === 'Q') return first
    if (type === 'P') this.#prepared.set(first, second)
    if (type === 'B') this.#portals.set(first, this.#prepared.get(second) ?? '')
    if (type === 'E') return this.#portals.get(first) ?? ''
    if (type === 'C') (first.startsWith('S') ? this.#prepared : this.#portals).delete(first.slice(1))
    return undefined
  }
}

/** The first two zero-terminated strings after the header. A Bind may be large, and only its names are of interest. */
function strings(bytes: Buffer): [string, string] {
  const end = bytes.indexOf(0, 5)
  const secondEnd = bytes.indexOf(0, end + 1)
  const first = bytes.toString('utf8', 5, end)
  return [first, secondEnd < 0 ? '' : bytes.toString('utf8', end + 1, secondEnd)]
}

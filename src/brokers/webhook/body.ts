/**
 * Bodies, read no further than they may be. Nobody has been asked for a signature yet that could be wrong, so anybody may
 * send one: in pieces of a byte, a byte a second, hundreds at a time.
 *
 * Each body is one buffer that grows with what has arrived, whatever Content-Length says, and all of them together have a
 * bound. Where it is reached, the body goes that has held the most for the longest, bytes times milliseconds: those of an
 * honest sender are few, and gone in a moment.
 */
import { sharedByCopies } from '../../copies.js'
import { isUint8Array } from 'node:util/types'

export type Read =
  { readonly bytes: Uint8Array } | { readonly problem: 'too-large' | 'too-slow' | 'crowded-out' | 'broken' }

/** Hands over a body, piece by piece. Answers how to stop it. A piece may be used again once it was taken. */
export type Flow = (to: { take(piece: Uint8Array): void; end(): void; broken(): void }) => () => void

export interface Limits {
  /** Of one body. */
  readonly maxBytes: number
  /** From its first look at a body to its end. */
  readonly bodyTimeoutMs?: number
  /** Of all bodies that are being read. */
  readonly maxBufferedBytes?: number
}

export interface Intake {
  read(flow: Flow): Promise<Read>
  /** What is allocated for bodies that are being read. */
  readonly bufferedBytes: number
}

interface Growing {
  buffer: Buffer
  size: number
  readonly since: number
  finish(read: Read): void
}

const FIRST_BYTES = 1_024

export function createIntake({ maxBytes, bodyTimeoutMs, maxBufferedBytes = Infinity }: Limits): Intake {
  const bodies = new Set<Growing>()
  let buffered = 0

  /** The one that has held the most for the longest, or would. */
  const heaviest = (asking: Growing, wanted: number): Growing => {
    const now = performance.now()
    const weigh = (one: Growing): number =>
      Math.max(one.buffer.length, one === asking ? wanted : 0) * (now - one.since + 1)
    let found = asking
    for (const one of bodies) if (weigh(one) > weigh(found)) found = one
    return found
  }

  /** Answers whether there is room now. */
  const grow = (body: Growing, needed: number): boolean => {
    if (needed <= body.buffer.length) return true
    const wanted = Math.min(maxBytes, Math.max(FIRST_BYTES, needed, body.buffer.length * 2))
    // The old one and the new one are there together.
    while (buffered + wanted > maxBufferedBytes) {
      const evicted = heaviest(body, wanted)
      evicted.finish({ problem: 'crowded-out' })
      if (evicted === body) return false
    }
    const larger = Buffer.allocUnsafeSlow(wanted)
    body.buffer.copy(larger, 0, 0, body.size)
    buffered += wanted - body.buffer.length
    body.buffer = larger
    return true
  }

  return {
    get bufferedBytes() {
      return buffered
    },
    read(flow) {
      return new Promise((resolve) => {
        let stop: (() => void) | undefined
        let timer: NodeJS.Timeout | undefined
        const body: Growing = {
          buffer: Buffer.alloc(0),
          size: 0,
          since: performance.now(),
          finish(read) {
            if (!bodies.delete(body)) return
            clearTimeout(timer)
            buffered -= body.buffer.length
            body.buffer = Buffer.alloc(0)
            stop?.()
            resolve(read)
          },
        }
        bodies.add(body)
        if (bodyTimeoutMs !== undefined) timer = setTimeout(() => body.finish({ problem: 'too-slow' }), bodyTimeoutMs)
        const broken = (): void => body.finish({ problem: 'broken' })
        try {
          stop = flow({
            take(piece) {
              if (!bodies.has(body)) return
              if (!isUint8Array(piece)) return broken()
              const size = body.size + piece.byteLength
              if (size > maxBytes) return body.finish({ problem: 'too-large' })
              if (!grow(body, size)) return
              body.buffer.set(piece, body.size)
              body.size = size
            },
            end: () => body.finish({ bytes: body.buffer.subarray(0, body.size) }),
            broken,
          })
        } catch {
          broken()
        }
        // It may have ended before it could be stopped.
        if (!bodies.has(body)) stop?.()
      })
    },
  }
}

/** Reads a body while it is not larger than allowed. */
export function readBody(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Read> {
  return createIntake({ maxBytes }).read(flowOfStream(body))
}

export function flowOfStream(body: ReadableStream<Uint8Array> | null): Flow {
  return ({ take, end, broken }) => {
    if (body === null) {
      end()
      return () => undefined
    }
    const reader = body.getReader()
    let stopped = false
    const pump = async (): Promise<void> => {
      while (!stopped) {
        const { done, value } = await reader.read()
        if (done) return end()
        take(value)
      }
    }
    pump().catch(broken)
    return () => {
      if (stopped) return
      stopped = true
      // Not waited for: the other end may never come to an end.
      reader.cancel().catch(() => undefined)
    }
  }
}

/** Where the bytes of a request come from, if there is a shorter way than its stream. */
const flows = sharedByCopies('flows', () => new WeakMap<Request, () => Flow | undefined>())

export function rememberFlow(request: Request, flow: () => Flow | undefined): void {
  flows.set(request, flow)
}

export function flowOf(request: Request): Flow {
  return flows.get(request)?.() ?? flowOfStream(request.body as ReadableStream<Uint8Array> | null)
}

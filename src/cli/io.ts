/**
 * What a command has of the outside: streams, environment, directory, and the signal that Ctrl-C gives. Tests hand in their
 * own.
 */

export interface Stream {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

export interface Io {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean | undefined }
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Aborted by Ctrl-C, and with an `OutputClosed` where stdout takes nothing more. */
  readonly signal: AbortSignal
}

/** `oncebox messages ls | head -1`: a command ends where it can, and nobody has interrupted it. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
  /** EPIPE: nobody reads on, and that is no failure. */
  readonly code: string

  constructor(code: string) {
    super(`what was printed could not be written: ${code === 'ENOSPC' ? 'no space is left (ENOSPC)' : code}`)
    this.code = code
  }
}

export function isOutputClosed({ reason }: AbortSignal): boolean {
  return reason instanceof OutputClosed
}

/** May somebody be asked? Never in CI, and only where both the question and the answer have a terminal. */
export function isInteractive({ stdin, stderr, env }: Io): boolean {
  return stdin.isTTY === true && stderr.isTTY === true && !isSet(env['CI'])
}

/** FORCE_COLOR goes before NO_COLOR, as it does in Node.js. */
export function hasColour({ env }: Io, stream: Stream): boolean {
  const force = env['FORCE_COLOR']
  if (force !== undefined) return force !== '0' && force !== 'false'
  if (env['NO_COLOR'] || env['TERM'] === 'dumb') return false
  return stream.isTTY === true
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0' && value !== 'false'
}

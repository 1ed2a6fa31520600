/** Stack: frames of one's own, those of libraries, and those that nobody reads folded to a line. */

export interface Frame {
  readonly kind: 'own' | 'library'
  readonly text: string
}

export interface Fold {
  readonly kind: 'fold'
  /** Such as "… 6 frames in node_modules". */
  readonly text: string
  readonly frames: readonly Frame[]
}

/** A line after the message that is no frame, such as what an error prints below its stack. */
export interface Other {
  readonly kind: 'other'
  readonly text: string
}

export type Line = Frame | Fold | Other

const FRAME = /^\s*at .+/
/** Of a run of library frames so many are shown. */
const SHOWN = 1
const MOST_LINES = 500

export function linesOf(stack: string): readonly Line[] {
  const lines = stack.split('\n', MOST_LINES)
  const first = lines.findIndex((line) => FRAME.test(line))
  if (first === -1) return []
  const read = lines
    .slice(first)
    .map((text): Frame | Other =>
      FRAME.test(text)
        ? { kind: isLibrary(text) ? 'library' : 'own', text: `    ${text.trim()}` }
        : { kind: 'other', text },
    )
  const folded: Line[] = []
  for (let at = 0; at < read.length;) {
    const run = runAt(read, at)
    folded.push(...(run.length > SHOWN + 1 ? [...run.slice(0, SHOWN), foldOf(run.slice(SHOWN))] : run))
    if (run.length === 0) folded.push(read[at]!)
    at += Math.max(1, run.length)
  }
  return folded
}

function runAt(lines: readonly (Frame | Other)[], from: number): readonly Frame[] {
  const run: Frame[] = []
  for (let at = from; lines[at]?.kind === 'library'; at += 1) run.push(lines[at] as Frame)
  return run
}

function foldOf(frames: readonly Frame[]): Fold {
  const packages = frames.some(({ text }) => text.includes('node_modules'))
  const node = frames.some(({ text }) => !text.includes('node_modules') && /\bnode:|<anonymous>|native/.test(text))
  const where = [...(packages ? ['node_modules'] : []), ...(node ? ['Node.js'] : [])].join(' and ') || 'libraries'
  return { kind: 'fold', text: `    … ${frames.length} frames in ${where}`, frames }
}

/** What is in a package, in the runtime, or in this library. */
function isLibrary(frame: string): boolean {
  return /[\\/]node_modules[\\/]|\(?\bnode:|\(?\b(?:internal|bun|ext):|\(native\)|<anonymous>\)?$|oncebox[\\/]dist[\\/]/.test(
    frame,
  )
}

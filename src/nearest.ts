/** The name that was meant, perhaps: few letters apart, or one that the other begins with. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  // Of a name of two letters one has to be right.
  let least = Math.min(Math.max(2, Math.floor(name.length / 3)) + 1, Math.max(name.length, 1))
  for (const candidate of known) {
    const [a, b] = [name.toLowerCase(), candidate.toLowerCase()]
    // One that the other begins with, such as batch and batchSize, is as near as a slip of one letter.
    const begins = Math.min(a.length, b.length) > 2 && (a.startsWith(b) || b.startsWith(a))
    const distance = begins ? 1 : editDistance(a, b)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

/** What to say of a name that is not known: which was meant, perhaps, or `otherwise`. */
export function hintAt(name: string, known: readonly string[], otherwise: string): string {
  const near = nearest(name, known)
  return near === undefined ? otherwise : `did you mean ${near}?`
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
    }
    row = next
  }
  return row[b.length]!
}

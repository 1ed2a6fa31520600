/** Compares the bodies of a conflict, wherever the whole of them has to be fetched from. */
import { api, type Conflict, type Fate, type Payload } from '../../api.js'
import { identityOf } from '../../logic/identity.js'
import { diffBodies, type Difference } from '../../logic/diff/index.js'
import { plural } from '../../logic/format.js'

/** What differs, or why that is not known. */
export type Compared = 'too-large' | 'no-json' | 'hidden' | 'gone' | Difference

export function differWords({ values, atLeast }: Difference): string {
  if (values === 0) return 'the same data: only what is hidden, or how it was sent, differs'
  return `${plural(values, 'value differs', 'values differ')}${atLeast ? ' at least' : ''}`
}

interface Comparing {
  readonly box: string
  readonly signal: AbortSignal
  /** Larger bodies are not compared, in bytes. */
  readonly most: number
}

export async function compare(
  { first, second }: Conflict,
  { box, signal, most }: Comparing,
): Promise<{ difference: Compared; texts?: [string, string] }> {
  if (!first) return { difference: 'gone' }
  const bodies = [first.body, second.body]
  if (bodies.some(({ withheld }) => withheld !== undefined)) return { difference: 'hidden' }
  if (bodies.some(({ bytes }) => bytes > most)) return { difference: 'too-large' }
  if (bodies.some(({ text }) => text === undefined)) return { difference: 'no-json' }
  const texts = await Promise.all([whole(first, { box, signal }), whole(second, { box, signal })])
  return { difference: (await diffBodies(...texts, { signal })) ?? 'no-json', texts }
}

/** Of a long one, an answer has the first part. */
function whole(fate: Fate, { box, signal }: Pick<Comparing, 'box' | 'signal'>): Promise<string> {
  const { whole: isWhole, text }: Payload = fate.body
  if (isWhole && text !== undefined) return Promise.resolve(text)
  return api.body({ box, ...identityOf(fate) }, { signal })
}

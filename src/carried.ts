/** Carried: how many messages one statement carries. */
import { MAX_BATCH_BYTES } from './figures.js'

/** Those of a list, from the first on, that fit into one statement, `most` of them: one at least. */
export function carried<T>(list: readonly T[], sizeOf: (one: T) => number, most = Infinity): number {
  let bytes = 0
  const end = list.findIndex((one, at) => at >= most || (bytes += sizeOf(one)) > MAX_BATCH_BYTES)
  return end < 0 ? list.length : Math.max(1, end)
}

/** All of a list, in as many parts as it takes. */
export function* inParts<T>(list: readonly T[], sizeOf: (one: T) => number, most = Infinity): Generator<readonly T[]> {
  for (let rest = list; rest.length > 0;) {
    const count = carried(rest, sizeOf, most)
    yield rest.slice(0, count)
    rest = rest.slice(count)
  }
}

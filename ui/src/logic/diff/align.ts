/** Pairs the elements of two arrays, so that one that was put in between does not make all behind it differ. */

export type Aligned = readonly [number | undefined, number | undefined]

/** A table of more fields would take too long: then each is paired with the one in its place. */
const MOST_FIELDS = 250_000

export function align(one: readonly number[], other: readonly number[]): Aligned[] {
  const shorter = Math.min(one.length, other.length)
  let begin = 0
  while (begin < shorter && one[begin] === other[begin]) begin += 1
  let end = 0
  while (end < shorter - begin && one.at(-1 - end) === other.at(-1 - end)) end += 1
  const [rows, columns] = [one.length - begin - end, other.length - begin - end]
  const middle =
    rows * columns > MOST_FIELDS
      ? inPlace(rows, columns)
      : inCommon(one.slice(begin), other.slice(begin), rows, columns)
  return [
    ...Array.from({ length: begin }, (_, at): Aligned => [at, at]),
    ...middle.map(([a, b]): Aligned => [a === undefined ? a : a + begin, b === undefined ? b : b + begin]),
    ...Array.from({ length: end }, (_, at): Aligned => [one.length - end + at, other.length - end + at]),
  ]
}

function inPlace(rows: number, columns: number): Aligned[] {
  return Array.from({ length: Math.max(rows, columns) }, (_, at): Aligned => [
    at < rows ? at : undefined,
    at < columns ? at : undefined,
  ])
}

/** The longest that both have in common, in order. What lies between two of them is paired in place. */
function inCommon(one: readonly number[], other: readonly number[], rows: number, columns: number): Aligned[] {
  const width = columns + 1
  const length = new Uint16Array((rows + 1) * width)
  for (let a = rows - 1; a >= 0; a--) {
    for (let b = columns - 1; b >= 0; b--) {
      length[a * width + b] =
        one[a] === other[b]
          ? length[(a + 1) * width + b + 1]! + 1
          : Math.max(length[(a + 1) * width + b]!, length[a * width + b + 1]!)
    }
  }
  const pairs: Aligned[] = []
  let [a, b, fromA, fromB] = [0, 0, 0, 0]
  const between = (): void => {
    pairs.push(
      ...inPlace(a - fromA, b - fromB).map(([x, y]): Aligned => [
        x === undefined ? x : x + fromA,
        y === undefined ? y : y + fromB,
      ]),
    )
  }
  while (a < rows && b < columns) {
    if (one[a] === other[b]) {
      between()
      pairs.push([a++, b++])
      ;[fromA, fromB] = [a, b]
    } else if (length[(a + 1) * width + b]! >= length[a * width + b + 1]!) a += 1
    else b += 1
  }
  ;[a, b] = [rows, columns]
  between()
  return pairs
}

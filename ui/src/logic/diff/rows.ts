/** Rows of a diff: two columns of lines, of which runs that are equal are folded. */

/** One line of one body. */
export interface Line {
  readonly line: number
  readonly before: string
  /** What differs of it. */
  readonly mark: string
  readonly after: string
}

export type DiffRow =
  | { readonly kind: 'same' | 'changed'; readonly left: Line; readonly right: Line }
  | { readonly kind: 'removed'; readonly left: Line }
  | { readonly kind: 'added'; readonly right: Line }
  | { readonly kind: 'fold'; readonly lines: number; readonly names: readonly string[]; readonly more: number }
  /** Too long to be shown whole. */
  | { readonly kind: 'cut'; readonly side: 'left' | 'right'; readonly lines: number }

export type Changed = Exclude<DiffRow, { kind: 'same' | 'fold' }>

/** What is equal: a line of its own, or a value of many lines that nobody has to see. */
interface Equal {
  readonly lines: number
  readonly name: string | undefined
  readonly row?: DiffRow
}

const LEAST_FOLDED = 3
const MOST_NAMES = 3

export class Rows {
  readonly rows: DiffRow[] = []
  private run: Equal[] = []
  private afterChange = false

  constructor(private readonly most: number) {}

  get isFull(): boolean {
    return this.rows.length >= this.most
  }

  equal(one: Equal): void {
    this.run.push(one)
  }

  /** A line that leads to a difference: it is equal, and has to be seen. */
  pinned(row: DiffRow): void {
    this.flush(false)
    this.add(row)
    this.afterChange = false
  }

  changed(row: Changed): void {
    this.flush(true)
    this.add(row)
    this.afterChange = true
  }

  end(): void {
    this.flush(false)
  }

  private add(row: DiffRow): void {
    if (!this.isFull) this.rows.push(row)
  }

  /** One line stays on each side that something differs on. */
  private flush(beforeChange: boolean): void {
    const run = this.run
    this.run = []
    const from = this.afterChange && run[0]?.row ? 1 : 0
    const to = beforeChange && run.length > from && run.at(-1)!.row ? run.length - 1 : run.length
    const middle = run.slice(from, to)
    const lines = middle.reduce((sum, one) => sum + one.lines, 0)
    const isFolded = lines >= LEAST_FOLDED
    for (const one of run.slice(0, from)) this.add(one.row!)
    if (isFolded) this.add(fold(middle, lines))
    else for (const one of middle) this.add(one.row ?? fold([one], one.lines))
    for (const one of run.slice(to)) this.add(one.row!)
  }
}

function fold(run: readonly Equal[], lines: number): DiffRow {
  const names = run.flatMap(({ name }) => (name === undefined ? [] : [name]))
  return { kind: 'fold', lines, names: names.slice(0, MOST_NAMES), more: Math.max(0, names.length - MOST_NAMES) }
}

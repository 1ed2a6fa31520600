/** A long text in blocks. No character of two halves is cut in two. */
export function blocksOf(text: string, size: number): readonly string[] {
  const blocks: string[] = []
  for (let from = 0; from < text.length;) {
    const end = from + size
    const isHalf = /[\ud800-\udbff]/.test(text[end - 1] ?? '') && /[\udc00-\udfff]/.test(text[end] ?? '')
    const to = isHalf ? end + 1 : end
    blocks.push(text.slice(from, to))
    from = to
  }
  return blocks
}

/**
 * Where the reader was on a page, for when they come back: the browser would go there at once, while what was there is still asked
 * for. So it waits until the page is long enough again, or the reader moves by themselves.
 */

const CALM_MS = 3_000
/** Nobody wants to be moved so long after they came. */
const MOST_MS = 30_000

/** By the number that an entry of the history has. */
const places = new Map<number, number>()
let last = 0
let gaveUp = new AbortController()

const entryNow = (): number => (history.state as { entry?: number } | null)?.entry ?? 0

/** The state of the next entry. Before leaving, so that the place of the one that is left is known. */
export function nextEntry(): { readonly entry: number } {
  last += 1
  return { entry: last }
}

export function startScroll(): void {
  history.scrollRestoration = 'manual'
  last = entryNow()
  addEventListener('scroll', () => void (gaveUp.signal.aborted && places.set(entryNow(), scrollY)))
  for (const moves of ['wheel', 'keydown', 'pointerdown']) addEventListener(moves, () => gaveUp.abort())
  gaveUp.abort()
}

/** To the top, of another page. */
export function scrollToTop(): void {
  gaveUp.abort()
  scrollTo(0, 0)
}

/** To where the reader was. */
export function scrollBack(): void {
  gaveUp.abort()
  const to = places.get(entryNow()) ?? 0
  const own = (gaveUp = new AbortController())
  let calm: number | undefined
  // What was there before may be long enough, and gone a moment later: so it goes on for a while after the last change.
  const watch = new ResizeObserver(() => {
    scrollTo(0, to)
    clearTimeout(calm)
    calm = setTimeout(() => void (Math.ceil(scrollY) >= to && own.abort()), CALM_MS)
  })
  const end = setTimeout(() => own.abort(), MOST_MS)
  own.signal.addEventListener('abort', () => {
    watch.disconnect()
    clearTimeout(calm)
    clearTimeout(end)
  })
  watch.observe(document.body)
}

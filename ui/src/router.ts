/**
 * The router: `place` is where the reader is. Links are ordinary links, so that they can be copied and opened in a tab of their own;
 * a plain click on one stays in the page.
 */
import { batch, computed, signal } from '@preact/signals'
import { readPlace, writePlace, type PageName, type Place } from './logic/place.js'
import { nextEntry, scrollBack, scrollToTop, startScroll } from './scroll.js'
import { told } from './told.js'

export type { PageName, Place } from './logic/place.js'

const here = (): Place | undefined => readPlace(told.base, location.pathname, location.search)

/** Undefined: there is no such page. */
export const place = signal<Place | undefined>(here())
/** The box of the address, or the first one: see session.ts. */
export const box = signal(place.value?.box ?? '')
/** Counts the times that the reader went to another page, not to another query of the same. */
export const visits = signal(0)
export const query = computed(() => place.value?.query ?? {})

/** The address of a page, of the box that is open unless another is named. */
export function href(page: PageName, of: Readonly<Record<string, string | undefined>> = {}, other?: string): string {
  const given = Object.entries(of).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const name = other ?? box.value
  return writePlace(told.base, {
    page,
    ...(page !== 'settings' && name !== '' && { box: name }),
    query: Object.fromEntries(given),
  })
}

/** The address of a search. */
export const search = (q: string): string => href('messages', { q })

export function go(address: string): void {
  const before = place.value
  history.pushState(nextEntry(), '', address)
  arrive()
  if (place.value?.page !== before?.page || place.value?.box !== before?.box) {
    visits.value += 1
    scrollToTop()
  }
}

/** Another query on the same page. `keep`: the way back leads to where the reader came from, not to each letter. */
export function setQuery(change: Readonly<Record<string, string | undefined>>, { keep = false } = {}): void {
  const at = place.value
  if (!at) return
  const merged = { ...at.query, ...change }
  const address = href(at.page, merged)
  if (keep) history.replaceState(history.state, '', address)
  else history.pushState(nextEntry(), '', address)
  arrive()
}

function arrive(): void {
  batch(() => {
    place.value = here()
    if (place.value?.box !== undefined) box.value = place.value.box
  })
}

export function startRouter(): void {
  startScroll()
  addEventListener('popstate', () => {
    arrive()
    visits.value += 1
    scrollBack()
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = (event.target as Element).closest('a')
    if (!link || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return
    if (readPlace(told.base, link.pathname, link.search) === undefined) return
    event.preventDefault()
    go(link.href)
  })
}

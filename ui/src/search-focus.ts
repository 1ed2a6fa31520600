/** The search bar is wanted from anywhere: the page of messages takes the focus when it is shown. */
import { signal } from '@preact/signals'

export const searchWanted = signal(false)

/** Focuses the search bar of this page; false if it has none. */
export function focusSearch(): boolean {
  const input = document.querySelector<HTMLInputElement>('.search-box input')
  input?.focus()
  searchWanted.value = input === null
  return input !== null
}

/**
 * The search bar is wanted from anywhere: the page of messages takes the focus when it is shown. Its code may still be on the way:
 * what is typed meanwhile is meant for the bar, and waits for it.
 */
import { signal } from '@preact/signals'

export const searchWanted = signal(false)
let typed = ''

/** Focuses the search bar of this page; false if it has none. */
export function focusSearch(): boolean {
  const input = document.querySelector<HTMLInputElement>('.search-box input')
  input?.focus()
  searchWanted.value = input === null
  typed = ''
  return input !== null
}

export const searchFocused = (): boolean => document.activeElement?.matches('.search-box input') ?? false

/** Keeps a key for the bar that is to come; false if none is. */
export function keepForSearch({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (!searchWanted.value || ctrlKey || metaKey || altKey || !document.querySelector('.to-come')) return false
  if (key === 'Backspace') typed = typed.slice(0, -1)
  else if (key === 'Enter') typed += '\n'
  else if (key.length === 1) typed += key
  else return false
  return true
}

/** What was typed before the bar was there. `entered`: and sent. */
export function takeTyped(): { text: string; entered: boolean } {
  const [text = '', ...more] = typed.split('\n')
  typed = ''
  return { text, entered: more.length > 0 }
}

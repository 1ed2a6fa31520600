/**
 * The keyboard. The shell has shortcuts for everywhere; a page adds its own for as long as it is shown, and wins. Rows are moved
 * through by focus, so that what is next is where the reader is, for eyes and for screen readers.
 */
import { useEffect, useRef } from 'preact/hooks'
import { signal } from '@preact/signals'
import { chordOf } from './logic/chords.js'
import { shortcutsOn } from './preferences.js'
import { keepForSearch } from './search-focus.js'

export interface Shortcut {
  /** `r`, `Shift+d`, `g o`. */
  readonly keys: string
  readonly does: string
  run(): void
}

/** The last ones win. */
export const shortcuts = signal<readonly (readonly Shortcut[])[]>([])
export const helpOpen = signal(false)

let before = ''

/** Adds shortcuts while the component is there. */
export function useShortcuts(own: readonly Shortcut[]): void {
  // What they do may change with every render; which they are does not.
  const said = own.map(({ keys, does }) => `${keys} ${does}`).join('\n')
  const latest = useRef(own)
  latest.current = own
  useEffect(() => {
    const added = latest.current.map(({ keys, does }, n) => ({ keys, does, run: () => latest.current[n]?.run() }))
    shortcuts.value = [...shortcuts.peek(), added]
    return () => {
      shortcuts.value = shortcuts.peek().filter((one) => one !== added)
    }
  }, [said])
}

export function startKeyboard(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return
    if (keepForSearch(event)) return event.preventDefault()
    if (shortcutsOn.value === 'off') return
    const target = event.target as HTMLElement
    // A dialog has the keyboard to itself.
    if (document.querySelector('dialog[open]')) return
    const chord = chordOf(
      {
        key: event.key,
        shift: event.shiftKey,
        modified: event.ctrlKey || event.metaKey || event.altKey,
        typing: target.matches('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]'),
      },
      before,
    )
    if (chord === undefined) return
    before = chord === 'g' ? 'g' : ''
    const found = shortcuts.value.flat().findLast(({ keys }) => keys === chord)
    if (!found) return
    event.preventDefault()
    found.run()
  })
}

const ROWS = '.row-link, .finding .what a, .group h2 a, [data-row]'

/** Moves the focus to the row after (1), or before (-1), the one that has it. */
export function moveRow(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(`#main :is(${ROWS})`)].filter(
    (row) => row.offsetParent !== null,
  )
  const focused = document.activeElement
  const at = rows.findIndex((row) => row === focused || row.closest('tr')?.contains(focused))
  const next = at === -1 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))
  rows[next]?.focus()
  rows[next]?.scrollIntoView({ block: 'nearest' })
}

/** What belongs to the row that has the focus. */
export function inRow<E extends Element>(selector: string): E | null {
  const row = document.activeElement?.closest('tr, li, [data-row-of]')
  return row?.querySelector<E>(selector) ?? null
}

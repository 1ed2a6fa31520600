/** The shortcuts that work everywhere. Those of a page stand before them. */
import { announce } from './announce.js'
import { copy } from './components/copy-button.js'
import { helpOpen, inRow, moveRow, useShortcuts, type Shortcut } from './keyboard.js'
import { paused, togglePaused } from './live.js'
import { go, href, type PageName } from './router.js'
import { focusSearch } from './search-focus.js'
import { toggleTheme } from './theme.js'

const GO: readonly (readonly [string, string, PageName])[] = [
  ['g o', 'Overview', 'overview'],
  ['g m', 'Messages', 'messages'],
  ['g f', 'Failures', 'failures'],
  ['g q', 'Quarantine', 'quarantine'],
  ['g k', 'Keys', 'keys'],
]

const SHELL: readonly Shortcut[] = [
  {
    keys: '/',
    does: 'Search',
    run() {
      if (!focusSearch()) go(href('messages'))
    },
  },
  { keys: 'j', does: 'Next row', run: () => moveRow(1) },
  { keys: 'k', does: 'Previous row', run: () => moveRow(-1) },
  { keys: 'x', does: 'Select row', run: () => inRow<HTMLInputElement>('input[type=checkbox]')?.click() },
  {
    keys: 'c',
    does: 'Copy id',
    run() {
      const id = (inRow<HTMLElement>('[data-id]') ?? document.querySelector<HTMLElement>('#main [data-page-id]'))
        ?.dataset
      const text = id?.['id'] ?? id?.['pageId']
      if (text !== undefined) void copy(text, 'id')
    },
  },
  {
    keys: 'p',
    does: 'Pause live updates',
    run() {
      togglePaused()
      announce(paused.value ? 'Updates are paused' : 'Updates are live')
    },
  },
  { keys: 't', does: 'Theme', run: toggleTheme },
  ...GO.map(([keys, does, page]): Shortcut => ({ keys, does, run: () => go(href(page)) })),
  { keys: '?', does: 'This help', run: () => (helpOpen.value = true) },
]

export function useShellShortcuts(): void {
  useShortcuts(SHELL)
}

/** What the reader has chosen, kept in this browser. Each is a signal that can be set. */
import { effect, signal, type Signal } from '@preact/signals'

const PREFIX = 'oncebox-'

export type Theme = 'system' | 'light' | 'dark'
export type Zone = 'local' | 'utc'
type Switch = 'on' | 'off'

export const theme = kept<Theme>('theme', ['system', 'light', 'dark'])
export const timeZone = kept<Zone>('zone', ['local', 'utc'])
/** Keys of one letter get in the way of some ways to type. */
export const shortcutsOn = kept<Switch>('shortcuts', ['on', 'off'])
/** Off: a page begins paused. */
export const liveAtStart = kept<Switch>('live', ['on', 'off'])

/** The first choice is the default. */
function kept<T extends string>(name: string, choices: readonly [T, ...T[]]): Signal<T> {
  const saved = read(PREFIX + name)
  const chosen = signal(choices.find((choice) => choice === saved) ?? choices[0])
  effect(() => write(PREFIX + name, chosen.value === choices[0] ? undefined : chosen.value))
  return chosen
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    // A private window, or a browser that keeps nothing.
    return null
  }
}

function write(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  } catch {
    // It holds until the tab is closed.
  }
}

/** The theme: `data-theme` only chooses between the two colours that each token has. */
import { computed, effect, signal } from '@preact/signals'
import { theme } from './preferences.js'

const system = matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(system.matches)

export const dark = computed(() => (theme.value === 'system' ? systemDark.value : theme.value === 'dark'))

export function startTheme(): void {
  system.addEventListener('change', ({ matches }) => (systemDark.value = matches))
  effect(() => {
    if (theme.value === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme.value
  })
}

/** By what is seen now: that the system has changed its own is told a moment later. */
export function toggleTheme(): void {
  const isDark = theme.value === 'system' ? system.matches : theme.value === 'dark'
  theme.value = isDark ? 'light' : 'dark'
}

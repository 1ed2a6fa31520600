/** Where the reader is, in words: the breadcrumbs, and the title of the tab. */
import { useEffect } from 'preact/hooks'
import { signal } from '@preact/signals'

export interface Crumb {
  readonly text: string
  readonly href?: string
}

/** What a page says of itself; without it, its name stands there. */
export const ownCrumbs = signal<readonly Crumb[] | undefined>(undefined)

export function useCrumbs(crumbs: readonly Crumb[]): void {
  const said = crumbs.map(({ text, href = '' }) => `${text} ${href}`).join('\n')
  useEffect(() => {
    ownCrumbs.value = crumbs
    return () => {
      ownCrumbs.value = undefined
    }
  }, [said])
}

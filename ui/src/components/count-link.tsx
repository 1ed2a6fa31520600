/** A count that leads to what it counts. Zero is grey, and leads nowhere. */
import { about } from '../logic/format.js'
import type { StateName } from '../api.js'
import { Silhouette } from './silhouette.js'

interface Props {
  n: number
  href: string
  /** "1 204 dead, charge-card": what a screen reader says. */
  label: string
  estimated?: boolean
  atLeast?: boolean
  /** Shown with its silhouette and colour. */
  state?: StateName
}

export function CountLink({ n, href, label, estimated = false, atLeast = false, state }: Props) {
  const text = about(n, { estimated, atLeast })
  if (n === 0) return <span class="nil">0</span>
  return (
    <a class={state ? `with-st f-${state}` : ''} href={href} aria-label={`${text} ${label}`}>
      {state && <Silhouette of={state} />}
      {text}
    </a>
  )
}

/** A small fact beside a name: mode, order, paused, behind. */
import type { ComponentChildren } from 'preact'
import { Silhouette, type Shape } from './silhouette.js'

export function Tag({ tone, shape, children }: { tone?: 'warn' | 'dead'; shape?: Shape; children: ComponentChildren }) {
  return (
    <span class={`tag ${tone ? `tag-${tone}` : ''}`}>
      {shape && <Silhouette of={shape} />}
      {children}
    </span>
  )
}

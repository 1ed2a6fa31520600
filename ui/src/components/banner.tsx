/** A sentence across the page: what is shown is not what it seems. */
import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.js'

interface Props {
  tone: 'bad' | 'warn' | 'calm'
  icon: IconName
  children: ComponentChildren
  end?: ComponentChildren
}

export function Banner({ tone, icon, children, end }: Props) {
  return (
    <div class={`banner banner-${tone}`}>
      <Icon name={icon} />
      <span>{children}</span>
      {end && <span class="end">{end}</span>}
    </div>
  )
}

/** Nothing there, and why that is fine or what to do about it. */
import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.js'

interface Props {
  icon: IconName
  title: string
  children?: ComponentChildren
  /** What to do. */
  actions?: ComponentChildren
  /** The level of its heading. */
  level?: 1 | 2 | 3
}

export function Empty({ icon, title, children, actions, level = 2 }: Props) {
  const Heading = `h${level}` as 'h2'
  return (
    <div class="empty">
      <Icon name={icon} class="ic-xl" />
      <Heading class="empty-title">{title}</Heading>
      {children !== undefined && <p>{children}</p>}
      {actions !== undefined && <div class="btns">{actions}</div>}
    </div>
  )
}

/** Buttons. One that the reader may not use stays visible, says why, and does nothing. */
import type { ComponentChildren } from 'preact'
import type { Action } from '../api.js'
import { refusal } from '../session.js'
import { Icon, type IconName } from './icon.js'

export interface ButtonProps {
  children?: ComponentChildren
  onClick(event: MouseEvent): void
  kind?: 'main' | 'risk' | 'bare' | 'plain'
  small?: boolean
  icon?: IconName
  /** What an icon alone means; also its title. */
  label?: string
  /** The right that it takes. */
  needs?: Action
  /** Why it cannot be used now, whatever the reader may. */
  blocked?: string | undefined
  pressed?: boolean
  /** Given the focus when a dialog opens. */
  autofocus?: boolean
  class?: string
}

export function Button(props: ButtonProps) {
  const { children, onClick, kind = 'plain', small, icon, label, needs, blocked, pressed, autofocus } = props
  const why = (needs && refusal(needs)) ?? blocked
  const looks = [
    'btn',
    kind === 'plain' ? '' : `btn-${kind}`,
    small ? 'btn-sm' : '',
    children === undefined ? 'btn-ic' : '',
    props.class ?? '',
  ]
  return (
    <button
      type="button"
      class={looks.filter(Boolean).join(' ')}
      {...(why !== undefined && { 'aria-disabled': 'true' })}
      {...(label !== undefined && { 'aria-label': why === undefined ? label : `${label}. ${why}` })}
      {...((why ?? label) !== undefined && { title: why ?? label })}
      {...(pressed !== undefined && { 'aria-pressed': pressed })}
      {...(autofocus && { autofocus: true })}
      onClick={(event) => {
        if (why === undefined) onClick(event)
      }}
    >
      {icon && <Icon name={icon} />}
      {children}
      {why !== undefined && children !== undefined && <span class="vh">. {why}</span>}
    </button>
  )
}

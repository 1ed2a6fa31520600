/**
 * The base of every dialog: native, so that what is behind cannot be reached, Escape closes it, and the focus goes back to where it
 * came from. On phones it rises from the bottom.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Button } from './button.js'

interface Props {
  title: ComponentChildren
  onClose(): void
  children: ComponentChildren
  /** Buttons, the one that acts last. */
  foot?: ComponentChildren
  /** Beside the title: the environment, for what changes something. */
  badge?: ComponentChildren
  class?: string
}

/** Open for as long as it is rendered. */
export function Dialog({ title, onClose, children, foot, badge, class: more = '' }: Props) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current!
    const from = document.activeElement
    if (!dialog.open) dialog.showModal()
    return () => {
      dialog.close()
      if (from instanceof HTMLElement && from.isConnected) from.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={`dlg ${more}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onMouseDown={(event) => {
        // Only what is outside of its content is the dialog itself.
        if (event.target === ref.current) onClose()
      }}
    >
      <div class="dlg-body">
        <div class="head">
          <h2 id={id}>{title}</h2>
          {badge ?? <Button kind="bare" icon="x" label="Close" onClick={onClose} />}
        </div>
        {children}
      </div>
      {foot !== undefined && <div class="dlg-foot">{foot}</div>}
    </dialog>
  )
}

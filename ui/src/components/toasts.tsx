/** Bottom right, for 6 s; longer while the pointer or the focus is on it. Errors stay. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { dismiss, toasts, type Toast } from '../toasts.js'
import { Button } from './button.js'
import { Silhouette } from './silhouette.js'

const SHOWN_MS = 6_000

/** `children` stand above them. */
export function Toasts({ children }: { children?: ComponentChildren }) {
  return (
    <div class="dock toasts">
      {children}
      <div class="toasts" role="status" aria-live="polite">
        {toasts.value.map((one) => (
          <ToastLine key={one.id} toast={one} />
        ))}
      </div>
    </div>
  )
}

function ToastLine({ toast: { id, text, detail, bad, action } }: { toast: Toast }) {
  const timer = useRef(0)
  const wait = (): void => {
    if (!bad) timer.current = window.setTimeout(() => dismiss(id), SHOWN_MS)
  }
  const stay = (): void => clearTimeout(timer.current)
  useEffect(() => {
    wait()
    return stay
  }, [])
  return (
    <div class="toast" onPointerEnter={stay} onPointerLeave={wait} onFocusIn={stay} onFocusOut={wait}>
      <Silhouette of={bad ? 'dead' : 'handled'} class={bad ? 'f-dead' : 'f-handled'} />
      <span class="tx">
        {text}
        {detail !== undefined && <small>{detail}</small>}
      </span>
      {action && (
        <Button
          small
          onClick={() => {
            dismiss(id)
            action.run()
          }}
        >
          {action.label}
        </Button>
      )}
      <Button small kind="bare" icon="x" label="Close" onClick={() => dismiss(id)} />
    </div>
  )
}

/** Copies a text, and says so. */
import { toast } from '../toasts.js'
import { Button } from './button.js'

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toast({ text: `Copied ${what}` })
  } catch {
    toast({ text: `${what} could not be copied`, detail: 'The browser allows it on https pages only.', bad: true })
  }
}

export function CopyButton({ text, what, children }: { text: string; what: string; children?: string }) {
  return (
    <Button small kind="bare" icon="copy" label={`Copy ${what}`} onClick={() => void copy(text, what)}>
      {children}
    </Button>
  )
}

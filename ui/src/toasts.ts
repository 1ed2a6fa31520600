/** Toasts: what was done, said once. Undo is offered only where it is true. */
import { signal } from '@preact/signals'

export interface Toast {
  readonly id: number
  readonly text: string
  readonly detail?: string
  /** Errors stay until they are closed. */
  readonly bad?: boolean
  readonly action?: { readonly label: string; run(): void }
}

export const toasts = signal<readonly Toast[]>([])
const MOST = 4
let last = 0

export function toast(shown: Omit<Toast, 'id'>): void {
  last += 1
  toasts.value = [...toasts.value.slice(1 - MOST), { ...shown, id: last }]
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id)
}

/** Says what went wrong, in the server's words. */
export function toastError(what: string, error: unknown): void {
  toast({ text: what, detail: error instanceof Error ? error.message : String(error), bad: true })
}

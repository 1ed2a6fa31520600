/**
 * A tap on the boxes of a process, for a person who watches one while it is developed: `oncebox dev`. Nobody listens
 * elsewhere, and then it costs a look at a variable for each batch.
 */
import { sharedByCopies } from './copies.js'

export interface Happening {
  readonly what: 'received' | 'duplicate' | 'quarantined' | 'handled' | 'failed' | 'dead' | 'sent'
  readonly id: string
  readonly type: string
  readonly consumer?: string | undefined
  /** From the time that it was claimed, or came, until it was settled. */
  readonly ms?: number
  readonly attempt?: number
  /** The message of the error, or why it is in quarantine. */
  readonly error?: string | undefined
  readonly data?: unknown
}

export type Listener = (happening: Happening) => void

const tap = sharedByCopies<{ listener: Listener | undefined }>('tap', () => ({ listener: undefined }))

export function listenTo(listener: Listener | undefined): void {
  tap.listener = listener
}

/** Undefined if nobody listens: look before you make up what to tell. */
export function listener(): Listener | undefined {
  return tap.listener
}

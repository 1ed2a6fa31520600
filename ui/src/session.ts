/** The session: who looks, what they may, and which boxes there are. Everything else waits for it. */
import { effect, signal } from '@preact/signals'
import { api, type Action, type Session } from './api.js'
import { box, place } from './router.js'
import { told } from './told.js'

export const session = signal<Session | undefined>(undefined)
export const sessionError = signal<unknown>(undefined)

export async function loadSession(): Promise<void> {
  try {
    const answer = await api.session({})
    sessionError.value = undefined
    if (place.value?.box === undefined) box.value = answer.boxes[0]?.name ?? ''
    session.value = answer
  } catch (error) {
    sessionError.value = error
  }
}

/** The box that is open is one of those there are. */
export const boxKnown = (): boolean => session.value?.boxes.some(({ name }) => name === box.value) ?? true

const WHAT: Readonly<Record<Action, string>> = {
  read: 'read',
  bodies: 'see payloads',
  retry: 'retry',
  discard: 'discard',
  answer: 'answer for effects',
  pause: 'pause consumers',
}

/** Why the reader may not, in words for a button's title; undefined if they may. The server refuses all the same. */
export function refusal(action: Action): string | undefined {
  const at = session.value
  if (at?.may.includes(action)) return undefined
  if (told.readOnly || at?.readOnly) return `Read-only. ${looksWords()}`
  return at ? `You may not ${WHAT[action]} here.` : 'Not known yet whether you may.'
}

export const may = (action: Action): boolean => refusal(action) === undefined

/** What a reader sees who can change nothing. */
export const looksWords = (): string =>
  session.value?.may.includes('bodies') === true
    ? 'You can look at everything and change nothing.'
    : 'You can look at everything but payloads and the words of errors, and change nothing.'

/** Nothing can be changed by whoever looks. */
export const looksOnly = (): boolean =>
  session.value !== undefined && !(['retry', 'discard', 'answer', 'pause'] as const).some(may)

effect(() => {
  const environment = session.value?.environment ?? told.environment
  if (environment !== undefined) document.documentElement.dataset['environment'] = environment
})

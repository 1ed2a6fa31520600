/** A question before something is changed: what happens, and a button with the verb. */
import type { ComponentChildren } from 'preact'
import { signal } from '@preact/signals'

interface Question {
  readonly title: string
  readonly text: ComponentChildren
  /** "Pause ship-order" */
  readonly verb: string
  readonly risk?: boolean
}

interface Asked extends Question {
  answer(yes: boolean): void
}

/** The question that is open. Its dialog comes with the others. */
export const asked = signal<Asked | undefined>(undefined)

/** True once the reader has said yes. One question at a time. */
export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false)
  return new Promise((resolve) => {
    const answer = (yes: boolean): void => {
      asked.value = undefined
      resolve(yes)
    }
    asked.value = { ...question, answer }
  })
}

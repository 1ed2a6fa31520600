/**
 * Messages that a function of the receiver's could not read: `map`, `type` or `key` threw, or answered no message. That is no
 * fault of the message, and what it should have become is not known, its type least of all. A broker would block what is behind
 * it, or give it up after some attempts, so the box keeps it; the sender of a webhook keeps it, and is told to come again.
 */
import type { Incoming } from '../message.js'
import { problemText, wordsOf } from './read.js'

/** A symbol: a copy of the message has it too, and no sender can set it. */
const UNMAPPED: unique symbol = Symbol.for('oncebox.unmapped') as never

/** The message as its adapter reads it, marked: the box keeps it as `unmapped`. A header says why, too. */
export function unmapped(message: Incoming, problem: string): Incoming {
  const text = problemText(problem)
  return Object.assign({ ...message, headers: { ...message.headers, 'oncebox-problem': text } }, { [UNMAPPED]: text })
}

/** Why a message is unmapped, if it is. */
export function unmappedProblem(incoming: Incoming): string | undefined {
  return (incoming as { readonly [UNMAPPED]?: string })[UNMAPPED]
}

/** What to say of a function that threw. JSON.parse quotes what it was given. */
export function threw(name: string, error: unknown): string {
  const words = wordsOf(error)
  return `${name} threw: ${words.startsWith('SyntaxError') ? 'SyntaxError' : words}`
}

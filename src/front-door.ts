/** The type of `handle` and `receive`: what they take, and what they answer. */
import type { Incoming, IncomingOf, MessageMap, Outcome } from './message.js'

/** `R` is what the handlers return, for those who wait for it: `const outcome: OutcomeOf<typeof handlers, 'x'> = await …`. */
export interface FrontDoor<M extends MessageMap = MessageMap> {
  <const K extends string, R = unknown>(message: { type: K } & IncomingOf<M, K>): Promise<Outcome<R>>
  <R = unknown>(messages: readonly Incoming[]): Promise<Outcome<R>[]>
  <const K extends string, R = unknown>(
    input: ({ type: K } & IncomingOf<M, K>) | readonly Incoming[],
  ): Promise<Outcome<R> | Outcome<R>[]>
}

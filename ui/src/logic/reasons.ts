/** Why a message is in quarantine, and what to do about it, in words. */
import type { Fate } from '../../../src/dashboard/answers/index.js'

export interface Advice {
  readonly title: string
  readonly text: string
}

export function adviceFor({ reason, source, consumer }: Pick<Fate, 'reason' | 'source' | 'consumer'>): Advice {
  const who = source === '' ? 'its producer' : source
  switch (reason) {
    case 'conflict':
      return {
        title: 'Another body came under an id that is known',
        text: `The first body counts. Retry would meet the same conflict: ask ${who} for a new id, or discard the second body.`,
      }
    case 'invalid':
      return {
        title: 'Its data does not fit the schema of its type',
        text: `Correct the schema, deploy, and retry; or ask ${who} to send it again in the right form, and discard this one.`,
      }
    case 'undecodable':
      return {
        title: 'Its body could not be decoded',
        text: `What came is below, byte by byte. If ${who} sends another format, give its source a decoder, and retry.`,
      }
    case 'unmapped':
      return {
        title: 'A function of its source could not read it',
        text: 'Nothing is wrong with it: map, type or key failed, as the detail says. Mend it and deploy; then hand in with box.receive what it makes of this one, and discard this one.',
      }
    case 'no-id':
      return {
        title: 'It came without an id',
        text: `Without one a duplicate cannot be told. Have ${who} send one, or tell the source where the id is; then discard this one.`,
      }
    case 'too-old':
      return {
        title: 'It is older than what is remembered',
        text: 'Whether it was handled before cannot be told any more. Retry if it was not, discard if it was.',
      }
    case 'too-large':
      return {
        title: 'It is larger than the box takes',
        text: `Raise the limit and retry; or have ${who} send a reference to what is large.`,
      }
    case 'unrouted':
      return {
        title: 'No consumer takes its type',
        text: 'Declare a consumer for it, deploy, and retry. If nobody should want it, discard it.',
      }
    case 'not-allowed':
      return {
        title: 'Its source may not send this type',
        text: `Allow it where the source is declared, and retry; or find out who sends ${source === '' ? 'without a source' : `as ${source}`}.`,
      }
    case 'effect-unknown':
      return {
        title: 'Nobody knows whether one of its effects happened',
        text: `Look it up where the effect goes to, by its idempotency key, and answer below. ${consumer} goes on from there.`,
      }
    default:
      return { title: reason ?? 'In quarantine', text: 'Look at it, then retry or discard it.' }
  }
}

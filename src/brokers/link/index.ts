/**
 * Link: a sink that is the inbox of another box, so events go from database to database without a broker.
 *
 *     orders.to(link({ to: billing }))
 *
 * Events keep their id, source, key, headers and body; their time is when they were sent. The receiving box recognises
 * what it has already, so a crash anywhere between the two neither loses nor doubles anything. What comes over a link
 * is validated when it is handled.
 */
import type { Incoming, Message, Outcome } from '../../message.js'
import { boolean, checked, invalid, name, optional, resolve } from '../../options.js'
import { bodyOf, INBOX, RELAY_INTO, type InboxTarget, type RelayInto } from '../handover.js'
import { fromTheDestination } from '../send.js'
import type { Sink } from '../sink.js'

/** How long an event waits whose message is being handled. */
const OPEN_MS = 1_000

export interface LinkOptions {
  /** The receiving box. */
  to: { receive(messages: readonly Incoming[]): Promise<readonly Outcome[]> }
  /**
   * The boxes share a database though they do not share a driver: events are moved by one statement of the sending
   * box, whose role must be allowed to write to the other schema. Boxes on one driver are recognised without it.
   */
  sameDatabase?: boolean | undefined
  /** What the sink is called in the outbox. Default: `link:` and the schema of the receiving box. */
  name?: string | undefined
}

export const LINK = {
  to: checked((where, given: LinkOptions['to']) => {
    if (typeof given?.receive === 'function') return given
    throw invalid(`${where} must be a box, as createBox returns it`)
  }),
  sameDatabase: boolean(false),
  name: optional(name(), "`link:` and the receiver's schema"),
}

export function link(options: LinkOptions): Sink {
  const { to, sameDatabase, name } = resolve('link', options, LINK)
  const target = (to as { [INBOX]?: InboxTarget })[INBOX]
  const sink: Sink & { name?: string; [RELAY_INTO]?: RelayInto } = {
    async publish(batch) {
      const outcomes = await to.receive(batch.map(toIncoming)).catch(fromTheDestination)
      // Not acknowledged: the receiving box is at it, in a transaction that is still open.
      return outcomes.map(({ ack, status }) =>
        ack ? undefined : { error: new Error(`the receiving box answered ${status}`), retry: true, afterMs: OPEN_MS },
      )
    },
    async close() {
      // The boxes and their pools belong to the code that made them.
    },
  }
  const receiver = target ? `link:${target.schema.slice(1, -1)}` : undefined
  if ((name ?? receiver) !== undefined) sink.name = name ?? receiver!
  if (target) sink[RELAY_INTO] = { target, sameDatabase }
  return sink
}

function toIncoming(message: Message): Incoming {
  const { id, source, type, key, subject, time, headers } = message
  return { id, source, type, key, subject, time, headers, body: bodyOf(message) }
}

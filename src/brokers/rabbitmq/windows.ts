/**
 * How much the broker hands out: windows of `prefetch` messages.
 *
 *     one window ── what waits for its retry fills half of the last one ──> one more, up to `hold` messages
 *                <── nothing is here, and nothing has come for a while: all but the first are closed ──┘
 *
 * A window is a consumer of the channel. The broker counts for each consumer what is not acknowledged, and nobody can
 * change the count of one that is there. While anything is here none is closed: what it has handed out would stay, one that
 * is opened in its place would bring as many again, and what an acknowledgement sets on its way a quorum queue would count
 * as delivered. A queue with a single active consumer gives further ones nothing: there it stays at one. After a loss the first one
 * has room for all that comes again, so that the broker hands it out at once, and what is lost once more does not come back behind
 * the rest of it.
 */
import type { Warn } from '../source.js'
import type { RabbitMessage, RabbitChannel, Session } from './client.js'
import type { ResolvedSource } from './options.js'

/** Messages that wait here, and cannot go on before their time. */
export interface Held {
  readonly messages: number
  readonly bytes: number
  /** How many messages are here at this moment, those that are being delivered too. */
  readonly all: () => number
}

export interface Windows {
  /** The first one, with room for so many at least. */
  open(least: number): Promise<void>
  /** Makes room for others beside what waits. */
  adjust(held: Held): void
  /** Asks the broker for no more. */
  close(): Promise<void>
}

/** Then nothing is on its way. */
const IDLE_MS = 1_000
const RECHECK_MS = 100
const FULL =
  "holds as many messages that wait for their retry as it may, and others wait behind them: raise hold, or take retryBy: 'box'"
/** Bodies that wait, in memory. Beyond that nothing more is asked for on their account. */
const MOST_HELD_BYTES = 64 * 1024 * 1024

/** What the protocol has room for. */
const MOST_PREFETCH = 65_535

export function createWindows(
  session: Session<RabbitChannel>,
  options: ResolvedSource,
  onMessage: (raw: RabbitMessage) => void,
  warn: Warn,
): Windows {
  const { channel } = session
  const { queue, prefetch, hold } = options
  const tags: string[] = []
  let wanted = 1
  /** The room of the first one. */
  let first = prefetch
  let changing: Promise<void> | undefined
  /** When something came, or was here. */
  let lastBusy = 0
  let recheck: NodeJS.Timeout | undefined

  const openOne = async (): Promise<void> => {
    await channel.prefetch(tags.length === 0 ? first : prefetch)
    const { consumerTag } = await channel.consume(queue, (raw) => {
      lastBusy = performance.now()
      if (raw) onMessage(raw)
      else session.fail(new Error(`RabbitMQ ended the consumer of ${queue}: the queue was deleted, or moved`))
    })
    tags.push(consumerTag)
  }

  /** Last in, first out: of a single active consumer the first one is the active one. */
  const closeOne = async (): Promise<void> => void (await channel.cancel(tags.pop()!))

  const change = async (): Promise<void> => {
    try {
      while (session.problem === undefined && tags.length !== wanted)
        await (tags.length < wanted ? openOne() : closeOne())
    } catch (error) {
      session.fail(error)
    } finally {
      changing = undefined
    }
  }

  const adjust = (held: Held): void => {
    clearTimeout(recheck)
    if (wanted === 0) return
    const isFull = held.bytes > MOST_HELD_BYTES || held.all() > hold
    const allowed = isFull ? wanted : 1 + Math.max(0, Math.floor((prefetch + hold - first) / prefetch))
    const needed = 1 + Math.max(0, Math.ceil((held.messages - first) / prefetch + 1 / 2))
    if (needed > allowed) warn(FULL)
    wanted = Math.max(wanted, Math.min(allowed, needed))
    if (wanted > 1) {
      // What was acknowledged a moment ago has set others on their way.
      const isBusy = held.all() > 0
      if (isBusy) lastBusy = performance.now()
      const idleMs = performance.now() - lastBusy
      if (idleMs > IDLE_MS) wanted = 1
      else recheck = setTimeout(adjust, isBusy ? RECHECK_MS : IDLE_MS + 1 - idleMs, held).unref()
    }
    if (wanted !== tags.length) changing ??= change()
  }

  return {
    async open(least) {
      first = Math.min(Math.max(prefetch, least), MOST_PREFETCH)
      // Messages may come before the answer does.
      await (changing = change())
    },
    adjust,
    async close() {
      clearTimeout(recheck)
      wanted = 0
      const closing = async (): Promise<void> => {
        await changing
        await change()
      }
      await Promise.race([closing(), session.lost])
    },
  }
}

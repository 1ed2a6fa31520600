/**
 * The conversation of a message as a small tree on one time axis: what caused it, the message with each of its fates, and what it
 * caused. Deeper parts are told by other answers, as far as they were asked for.
 */
import type { Conversation, Fate, Link, StateName } from '../../../src/dashboard/answers/index.js'
import { duration } from './format.js'

/** What is known of one message of the conversation. */
export interface Known {
  /** Of the message that is open. */
  readonly fates: readonly Fate[]
  readonly box: string
  readonly conversation: Conversation
  /** Answers about others, by `keyOf`: what they caused. */
  readonly more: ReadonlyMap<string, Conversation>
}

export interface Row {
  readonly link: Link
  /** For each level whether its line goes on below: the last one is the row's own. */
  readonly elbows: readonly boolean[]
  readonly isHere: boolean
  /** In hundredths of the axis. */
  readonly from: number
  readonly width: number
  readonly words: string
  /** Nobody has asked yet what it caused. */
  readonly canOpen: boolean
  /** More than one: it stands for the message itself, and each has a row of its own below. */
  readonly recipients: number
}

export interface Flow {
  readonly rows: readonly Row[]
  readonly spanMs: number
}

interface Node {
  readonly link: Link
  readonly isHere: boolean
  readonly endedAt?: string | undefined
  readonly inner: readonly Node[]
  readonly canOpen: boolean
  /** Of a message with several: one node for each. */
  readonly recipients?: readonly Node[]
}

const LEAF = { isHere: false, inner: [], canOpen: false } as const

/** A bar that is thinner cannot be seen. */
const LEAST_WIDTH = 1
const MOST_ROWS = 200

export function keyOf({ box, source, id }: Pick<Link, 'box' | 'source' | 'id'>): string {
  return JSON.stringify([box, source, id])
}

/** Who has it: a consumer, or the outbox for a sink. */
export function placeOf({ box, consumer, outbox }: Link, here: string): string {
  const own = !outbox ? consumer : consumer === '' ? 'outbox' : `outbox → ${consumer}`
  return box === here ? own : `${box} · ${own}`
}

/** What is to be said below the rows. */
export function conversationNote({ cause, caused, complete }: Conversation): string | undefined {
  const isAlone = cause === undefined && caused.length === 0
  if (complete) return isAlone ? 'No other message in the boxes of this dashboard caused it, or was caused by it.' : undefined // prettier-ignore
  return `${isAlone ? 'No other message was found. ' : ''}Only as far was looked as is cheap: there may be more.`
}

export function flowOf(known: Known, current: Pick<Fate, 'consumer' | 'n'>, now: number): Flow {
  const roots = rootsOf(known, current)
  const all = [...walk(roots)].slice(0, MOST_ROWS)
  const starts = all.map(({ node }) => Date.parse(node.link.receivedAt))
  const ends = all.map(({ node }) => endOf(node, now))
  const begin = Math.min(...starts)
  const spanMs = Math.max(1, Math.max(...ends) - begin)
  const rows = all.map(({ node, elbows }, index): Row => {
    const [start, end] = [starts[index]!, ends[index]!]
    const width = Math.max(LEAST_WIDTH, ((end - start) / spanMs) * 100)
    return {
      link: node.link,
      elbows,
      isHere: node.isHere,
      from: round(Math.min(100 - width, ((start - begin) / spanMs) * 100)),
      width: round(width),
      words: wordsOf(node, { start, end, begin }),
      canOpen: node.canOpen,
      recipients: node.recipients?.length ?? 1,
    }
  })
  return { rows, spanMs }
}

function rootsOf({ fates, box, conversation, more }: Known, current: Pick<Fate, 'consumer' | 'n'>): readonly Node[] {
  const seen = new Set<string>()
  const grow = (links: readonly Link[]): readonly Node[] =>
    [...new Set(links.map(keyOf))].map((key) => {
      const group = links.filter((link) => keyOf(link) === key)
      // What messages cause in a circle is shown once.
      const isFirst = !seen.has(key)
      seen.add(key)
      const told = isFirst ? more.get(key) : undefined
      const nodes = group.map((link): Node => ({ ...LEAF, link }))
      // Nobody has got what is in an outbox.
      const canOpen = isFirst && told === undefined && group.some(({ outbox }) => !outbox)
      return { ...messageOf(nodes, told ? grow(told.caused) : []), canOpen }
    })
  const here = fates.map((fate): Node => ({
    ...LEAF,
    link: linkOf(fate, box),
    isHere: fate.consumer === current.consumer && fate.n === current.n,
    endedAt: fate.handledAt ?? (isOver(fate.state) ? fate.history.at(-1)?.at : undefined),
  }))
  const [first] = fates
  if (!first) return []
  seen.add(keyOf({ box, ...first }))
  const own = messageOf(here, grow(conversation.caused))
  const { cause } = conversation
  return [cause ? { ...LEAF, link: cause, inner: [own] } : own]
}

/** A message with what it caused. Which of several consumers has sent that is not on record: it hangs beside them. */
function messageOf(nodes: readonly Node[], caused: readonly Node[]): Node {
  const [first] = nodes
  if (nodes.length === 1) return { ...first!, inner: caused }
  return { ...LEAF, link: first!.link, recipients: nodes, inner: [...nodes, ...caused] }
}

function* walk(
  nodes: readonly Node[],
  above: readonly boolean[] = [],
): Generator<{ node: Node; elbows: readonly boolean[] }> {
  for (const [index, node] of nodes.entries()) {
    const elbows = [...above, index < nodes.length - 1]
    // Roots have no line that leads to them.
    yield { node, elbows: elbows.slice(1) }
    yield* walk(node.inner, elbows)
  }
}

function linkOf({ consumer, source, id, type, state, receivedAt, outbox }: Fate, box: string): Link {
  return { box, consumer, source, id, type, state, receivedAt, ...(outbox && { outbox }) }
}

function isOver(state: StateName): boolean {
  return state !== 'pending' && state !== 'processing'
}

function endOf({ link, endedAt, isHere, recipients }: Node, now: number): number {
  if (recipients) return Math.max(...recipients.map((one) => endOf(one, now)))
  const start = Date.parse(link.receivedAt)
  if (endedAt !== undefined) return Math.max(start, Date.parse(endedAt))
  // How long others took is not part of the answer; what waits, waits until now.
  return !isOver(link.state) && (isHere || link.state === 'pending') ? Math.max(start, now) : start
}

function wordsOf(
  { link, endedAt, recipients }: Node,
  { start, end, begin }: { start: number; end: number; begin: number },
): string {
  if (recipients) return ''
  if (link.state === 'pending') return link.outbox ? 'to be sent' : 'waits'
  if (link.state === 'processing') return 'runs'
  if (endedAt !== undefined) return duration(end - start)
  return start === begin ? duration(0) : `+${duration(start - begin)}`
}

function round(share: number): number {
  return Math.round(share * 100) / 100
}

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
}

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
    }
  })
  return { rows, spanMs }
}

function rootsOf({ fates, box, conversation, more }: Known, current: Pick<Fate, 'consumer' | 'n'>): readonly Node[] {
  const seen = new Set<string>()
  const grow = (link: Link): Node => {
    const key = keyOf(link)
    // Of one message with several consumers, the first has what it caused below it.
    const isFirst = !seen.has(key)
    seen.add(key)
    const told = more.get(key)
    const inner = isFirst && told ? told.caused.map(grow) : []
    // Nobody has got it yet.
    return { link, isHere: false, inner, canOpen: isFirst && told === undefined && !link.outbox }
  }
  const [first] = fates
  if (first) seen.add(keyOf({ box, ...first }))
  const caused = conversation.caused.map(grow)
  const here = fates.map((fate, index): Node => ({
    link: linkOf(fate, box),
    isHere: fate.consumer === current.consumer && fate.n === current.n,
    endedAt: fate.handledAt ?? (isOver(fate.state) ? fate.history.at(-1)?.at : undefined),
    // Which of the consumers has sent it is not on record.
    inner: index === fates.length - 1 ? caused : [],
    canOpen: false,
  }))
  const { cause } = conversation
  return cause ? [{ link: cause, isHere: false, inner: here, canOpen: false }] : here
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

function endOf({ link, endedAt, isHere }: Node, now: number): number {
  const start = Date.parse(link.receivedAt)
  if (endedAt !== undefined) return Math.max(start, Date.parse(endedAt))
  // How long others took is not part of the answer; what waits, waits until now.
  return !isOver(link.state) && (isHere || link.state === 'pending') ? Math.max(start, now) : start
}

function wordsOf(
  { link, endedAt }: Node,
  { start, end, begin }: { start: number; end: number; begin: number },
): string {
  if (link.state === 'pending') return link.outbox ? 'to be sent' : 'waits'
  if (link.state === 'processing') return 'runs'
  if (endedAt !== undefined) return duration(end - start)
  return start === begin ? duration(0) : `+${duration(start - begin)}`
}

function round(share: number): number {
  return Math.round(share * 100) / 100
}

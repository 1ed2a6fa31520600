/** The verdict: is anything wrong, where, since when, and what to do. */
import type { ConsumerStatus, FailureHead, Finding, Overview } from '../../../src/dashboard/answers/index.js'
import { quote } from '../../../src/dashboard/quote.js'
import { about, count, duration, plural, rate } from './format.js'

/** What the server takes, unless it says otherwise. */
export const BEHIND_MS = 120_000

export interface Verdict {
  readonly title: string
  readonly text: string
}

export interface Told {
  readonly tint: 'dead' | 'quarantined' | 'warn'
  readonly shape: 'behind' | 'dead' | 'quarantined' | 'paused'
  readonly word: string
  readonly what: string
  readonly why: readonly string[]
  /** An error, in its own words. */
  readonly code?: string
  readonly page: 'failures' | 'messages' | 'outbox' | 'keys' | 'quarantine' | 'doctor'
  readonly query?: Readonly<Record<string, string>>
  /** Ends in a verb. */
  readonly go: string
  readonly since?: string
}

export function isBehind({ paused, lagMs, limitMs = BEHIND_MS }: ConsumerStatus): boolean {
  return !paused && lagMs > limitMs
}

/** `''` is nobody's: what was refused at the door. */
export const consumersOf = ({ consumers }: Overview): ConsumerStatus[] => consumers.filter(({ name }) => name !== '')

export function verdictOf(overview: Overview, began: (oldest: string) => string): Verdict {
  const { findings } = overview
  const consumers = consumersOf(overview)
  const fine = consumers.filter((one) => isFine(one)).length
  const oldest = findings.flatMap(({ since }) => since ?? []).sort()[0]
  if (findings.length > 0) {
    const first =
      consumers.length === 0
        ? ''
        : `${fine} of ${plural(consumers.length, 'consumer')} ${fine === 1 ? 'is' : 'are'} fine.`
    const second = oldest === undefined ? '' : ` The oldest of these began at ${began(oldest)}.`
    return {
      title: findings.length === 1 ? '1 thing needs you' : `${findings.length} things need you`,
      text: `${first}${second}`.trim(),
    }
  }
  if (isEmpty(overview)) {
    return { title: 'No message yet', text: 'This page fills by itself when the first message arrives.' }
  }
  const keepUp = consumers.filter((one) => !isBehind(one) && !one.paused).length
  const lag = Math.max(0, ...consumers.filter(({ paused }) => !paused).map(({ lagMs }) => lagMs))
  return {
    title: 'All clear',
    text: `${keepUp} of ${plural(consumers.length, 'consumer')} ${keepUp === 1 ? 'keeps' : 'keep'} up. Oldest message that is due: ${duration(lag)}. Nothing dead, nothing in quarantine.`,
  }
}

/** Nothing was ever received. */
export function isEmpty({ consumers }: Overview): boolean {
  return consumers.every(
    (one) => one.pending + one.processing + one.handled + one.dead + one.quarantined + one.discarded === 0,
  )
}

function isFine(one: ConsumerStatus): boolean {
  return !isBehind(one) && !one.paused && one.dead + one.quarantined === 0
}

export function tell(finding: Finding, overview: Overview): Told {
  const since = finding.since === undefined ? {} : { since: finding.since }
  return { ...wordsOf(finding, overview), ...since }
}

function wordsOf(finding: Finding, overview: Overview): Told {
  const { code, consumer = '', count: n = 0, lagMs = 0, text = '' } = finding
  switch (code) {
    case 'behind':
      return behind(
        overview.consumers.find(({ name }) => name === consumer),
        { consumer, lagMs, n },
      )
    case 'sink-behind':
      return sinkBehind(finding, overview)
    case 'sink-dead':
      return sinkDead(finding, overview)
    case 'blocked':
      return {
        tint: 'dead',
        shape: 'dead',
        word: 'Keys blocked',
        what: `${plural(n, 'key')}${overview.blocked.complete ? '' : ' or more'}${ofOne(overview)} ${n === 1 ? 'is' : 'are'} blocked`,
        why: [behindKeys(overview.blocked)],
        page: 'keys',
        go: 'See keys',
      }
    case 'quarantined':
      return {
        tint: 'quarantined',
        shape: 'quarantined',
        word: 'Quarantined',
        what: `${plural(n, 'message')} cannot be judged`,
        why: where(overview, 'quarantined'),
        page: 'quarantine',
        go: 'Decide',
      }
    case 'dead':
      return {
        tint: 'dead',
        shape: 'dead',
        word: 'Dead',
        what: `${plural(n, 'message')} ${n === 1 ? 'is' : 'are'} dead`,
        why: where(overview, 'dead'),
        page: 'failures',
        go: 'See failures',
      }
    case 'unhealthy':
      if (finding.sink !== undefined) return sinkBehind(finding, overview)
      return {
        tint: 'dead',
        shape: 'behind',
        word: 'Unhealthy',
        what: text,
        why: [],
        page: 'doctor',
        go: 'Ask the doctor',
      }
  }
}

function behind(
  status: ConsumerStatus | undefined,
  { consumer, lagMs, n }: { consumer: string; lagMs: number; n: number },
): Told {
  const rates = status?.rates
  const failing = (status?.dead ?? 0) > 0
  return {
    tint: 'dead',
    shape: 'behind',
    word: 'Behind',
    what: `${consumer} is ${duration(lagMs)} behind`,
    why: [
      ...(rates ? [`in ${rate(rates.inPerSecond)}/s, out ${rate(rates.outPerSecond)}/s`] : []),
      `${count(n)} wait`,
      ...(failing ? [`${count(status!.dead)} dead`] : []),
    ],
    ...(failing
      ? { page: 'failures', query: { consumer }, go: 'See failures' }
      : { page: 'messages', query: { q: `consumer:${quote(consumer)} state:pending` }, go: 'See what waits' }),
  }
}

/** GatewayTimeout ETIMEDOUT */
export function withCode({ name, code }: FailureHead): string {
  return code === undefined ? name : `${name} ${code}`
}

/** It is down if an event of it has failed, or the process says of its relay that it does not get through. */
function sinkBehind(finding: Finding, { sinks }: Overview): Told {
  const { sink = '', lagMs = 0, count: n = 0, text } = finding
  const status = sinks.find(({ name }) => name === sink)
  const error = status?.error
  const down = text !== undefined || error !== undefined
  return {
    ...inOutbox(error, text?.slice(`sink ${sink} is down: `.length)),
    shape: 'behind',
    word: down ? 'Sink down' : 'Sink behind',
    what: down ? `${sink} does not answer` : `${sink} is ${duration(lagMs)} behind`,
    why: [
      ...(n > 0
        ? [`${plural(n, 'event')}${status && n >= status.most ? ' or more' : ''} ${n === 1 ? 'waits' : 'wait'}`]
        : []),
      ...(status?.processes.length === 0 ? ['no process has it attached'] : []),
    ],
  }
}

function inOutbox(error?: FailureHead, said?: string) {
  const code = said || error?.message || (error && withCode(error))
  return { tint: 'dead', page: 'outbox', go: 'See events', ...(code && { code }) } as const
}

function sinkDead({ sink = '', count: n = 0 }: Finding, { sinks }: Overview): Told {
  const { most = Infinity, deadError: error } = sinks.find(({ name }) => name === sink) ?? {}
  return {
    ...inOutbox(error),
    shape: 'dead',
    word: 'Dead',
    what: `${about(n, { atLeast: n >= most })} ${n === 1 ? 'event is' : 'events are'} dead for ${sink}`,
    why: [],
  }
}

/** "17 in charge-card, 2 in ship-order, 3 elsewhere" */
function where({ consumers }: Overview, state: 'dead' | 'quarantined'): string[] {
  const some = consumers.filter((one) => one[state] > 0).sort((a, b) => b[state] - a[state])
  const named = some
    .slice(0, 2)
    .map((one) => `${count(one[state])} ${one.name === '' ? 'at the door' : `in ${one.name}`}`)
  const rest = some.slice(2).reduce((all, one) => all + one[state], 0)
  return named.length === 0 ? [] : [[...named, ...(rest > 0 ? [`${count(rest)} elsewhere`] : [])].join(', ')]
}

/** "2 207 messages wait behind 8 that stopped" */
function behindKeys({ keys, waiting, atLeast }: Overview['blocked']): string {
  if (waiting === 0) return 'nothing waits behind what stopped'
  const wait = `${about(waiting, { atLeast })} ${waiting === 1 ? 'message waits' : 'messages wait'}`
  return `${wait} behind ${keys === 1 ? 'one' : count(keys)} that stopped`
}

function ofOne({ consumers }: Overview): string {
  const [only, ...others] = consumers.filter(({ blockedKeys = 0 }) => blockedKeys > 0)
  return only === undefined || others.length > 0 ? '' : ` of ${only.name}`
}

/** Worst first. */
export function worstFirst(consumers: readonly ConsumerStatus[]): ConsumerStatus[] {
  const rank = (one: ConsumerStatus): number =>
    isBehind(one) ? 0 : one.paused ? 1 : one.dead > 0 ? 2 : one.quarantined > 0 ? 3 : 4
  return [...consumers].sort(
    (a, b) => rank(a) - rank(b) || (rank(a) < 2 ? b.lagMs - a.lagMs : b.dead - a.dead) || a.name.localeCompare(b.name),
  )
}

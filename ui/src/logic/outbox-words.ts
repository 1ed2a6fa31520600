/** What the page of the outbox says: what is the matter with a sink, and the sentence above all of them. */
import type { Finding, Outbox, SinkStatus } from '../../../src/dashboard/answers/index.js'
import { about, count, duration, plural } from './format.js'
import { isDown } from './sink-down.js'
import { BEHIND_MS } from './verdict.js'

export type SinkState = 'dead' | 'failing' | 'alone' | 'behind' | 'busy' | 'up' | 'idle'

/** Longer than this nothing waits for a sink that keeps up. */
const MOMENT_MS = 10_000
const NEEDS: readonly SinkState[] = ['failing', 'dead', 'alone', 'behind']

/** The worst first. `alone`: events wait, and no process has it attached. `idle`: none wait either. */
export function sinkState(sink: SinkStatus, findings: readonly Finding[] = []): SinkState {
  const { dead, error, ready, delayed, processes, held, lagMs } = sink
  if (error || isDown(sink, findings)) return 'failing'
  if (dead > 0) return 'dead'
  if (processes.length === 0) return ready + delayed > 0 ? 'alone' : 'idle'
  if (lagMs > BEHIND_MS) return 'behind'
  return held || ready > 0 ? 'busy' : 'up'
}

export const SINK_WORDS: Readonly<Record<SinkState, string>> = {
  failing: 'Failing',
  dead: 'Dead events',
  alone: 'Nobody publishes',
  behind: 'Behind',
  busy: 'Publishing',
  up: 'Up',
  idle: 'Idle',
}

/** Events that are to be published, as far as they were counted. */
export function waitingFor(sink: SinkStatus): string {
  return about(sink.ready + sink.delayed, { atLeast: isCutOff(sink) })
}

function isCutOff({ ready, delayed, most }: SinkStatus): boolean {
  return ready >= most || delayed >= most
}

export function outboxTitle({ sinks }: Outbox, findings: readonly Finding[] = []): string {
  const named = sinks.filter(({ name }) => name !== '')
  const bad = named.filter((sink) => NEEDS.includes(sinkState(sink, findings)))
  if (named.length === 0) return 'No sink is attached'
  if (bad.length === 0 && named.some(({ lagMs }) => lagMs > MOMENT_MS)) return 'Events wait to be published'
  if (bad.length === 0) return named.length === 1 ? 'The sink keeps up' : `All ${count(named.length)} sinks keep up`
  return `${plural(bad.length, 'sink needs', 'sinks need')} you`
}

export function outboxSentence({ sinks }: Outbox): string {
  const waiting = sinks.reduce((sum, { ready, delayed }) => sum + ready + delayed, 0)
  const atLeast = sinks.some(isCutOff)
  const oldest = Math.max(0, ...sinks.map(({ lagMs }) => lagMs))
  const unwanted = sinks.find(({ name }) => name === '')
  const wait = waiting === 0 ? 'Nothing waits to be published.' : `${about(waiting, { atLeast })} ${waiting === 1 ? 'event waits' : 'events wait'} to be published${oldest > 0 ? `, the oldest for ${duration(oldest)}` : ''}.` // prettier-ignore
  const nobody = unwanted && unwanted.ready + unwanted.delayed > 0 ? ` ${waitingFor(unwanted)} of them are wanted by no sink yet.` : '' // prettier-ignore
  return `${wait}${nobody}`
}

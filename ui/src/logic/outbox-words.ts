/** What the page of the outbox says: what is the matter with a sink, and the sentence above all of them. */
import type { Outbox, SinkStatus } from '../../../src/dashboard/answers/index.js'
import { about, count, duration, plural } from './format.js'

export type SinkState = 'dead' | 'failing' | 'alone' | 'busy' | 'up' | 'idle'

/** The worst first. `alone`: events wait, and no process has it attached. `idle`: none wait either. */
export function sinkState({ dead, error, ready, delayed, processes, held }: SinkStatus): SinkState {
  if (error) return 'failing'
  if (dead > 0) return 'dead'
  if (processes.length === 0) return ready + delayed > 0 ? 'alone' : 'idle'
  return held || ready > 0 ? 'busy' : 'up'
}

export const SINK_WORDS: Readonly<Record<SinkState, string>> = {
  failing: 'Fails',
  dead: 'Dead events',
  alone: 'Nobody publishes',
  busy: 'Publishing',
  up: 'Up',
  idle: 'Idle',
}

/** Events that are to be published, as far as they were counted. */
export function waitingFor({ ready, delayed, most }: SinkStatus): string {
  return about(ready + delayed, { atLeast: ready >= most || delayed >= most })
}

export function outboxTitle({ sinks }: Outbox): string {
  const named = sinks.filter(({ name }) => name !== '')
  const bad = named.filter((sink) => ['failing', 'dead', 'alone'].includes(sinkState(sink)))
  if (named.length === 0) return 'No sink is attached'
  if (bad.length === 0) return named.length === 1 ? 'The sink keeps up' : `All ${count(named.length)} sinks keep up`
  return `${plural(bad.length, 'sink needs', 'sinks need')} you`
}

export function outboxSentence({ sinks }: Outbox): string {
  const waiting = sinks.reduce((sum, { ready, delayed }) => sum + ready + delayed, 0)
  const oldest = Math.max(0, ...sinks.map(({ lagMs }) => lagMs))
  const unwanted = sinks.find(({ name }) => name === '')
  const wait = waiting === 0 ? 'Nothing waits to be published.' : `${plural(waiting, 'event waits', 'events wait')} to be published${oldest > 0 ? `, the oldest for ${duration(oldest)}` : ''}.` // prettier-ignore
  const nobody = unwanted && unwanted.ready + unwanted.delayed > 0 ? ` ${waitingFor(unwanted)} of them are wanted by no sink yet.` : '' // prettier-ignore
  return `${wait}${nobody}`
}

/** The outbox: sinks that nobody attaches, events that are not published, and events that nobody wants. */
import { GONE_MS } from '../../figures.js'
import { LOOK_SINKS, LOOK_UNWANTED, type SinkFacts, type UnwantedFacts } from '../../postgres/sql/doctor-outbox.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { counted, quoted, span, verb } from './words.js'

interface Facts {
  readonly sinks: readonly SinkFacts[]
  readonly unwanted: UnwantedFacts
}

const isAttended = ({ held, processes }: SinkFacts): boolean => held || processes > 0

/** A relay may hold it whose process has not been seen. */
const attached = (processes: number): string =>
  processes === 0
    ? 'a relay holds it'
    : `${counted(processes, 'process', 'processes')} ${verb(processes, 'attaches', 'attach')} it`

const UNATTENDED = check<Facts>({
  code: 'sink-unattended',
  severity: 'serious',
  why: 'Events are written for it and no process publishes them: the outbox grows, and receivers hear nothing.',
  find: ({ sinks }, { limits }) =>
    sinks
      .filter((sink) => !isAttended(sink) && sink.dueMs !== null && sink.dueMs > limits.waitingMs)
      .map(({ sink, due, dueMs }) => ({
        what: `${counted(due, 'event')} ${verb(due, 'is', 'are')} due for sink ${sink}, the oldest for ${span(dueMs!)}, and no process attaches it`,
        figures: { sink, due, dueMs: dueMs! },
        fix: `start a process with box.to(…, { name: ${quoted(sink)} }); if it is gone for good: await box.admin.removeSink(${quoted(sink)})`,
      })),
})

const STUCK = check<Facts>({
  code: 'outbox-not-draining',
  severity: 'serious',
  why: 'A relay is at it and does not get through: its broker is down, refuses an event that holds its key back, or is too slow.',
  find: ({ sinks }, { limits }) =>
    sinks
      .filter((sink) => isAttended(sink) && sink.dueMs !== null && sink.dueMs > limits.lagMs)
      .map(({ sink, due, dueMs, processes }) => ({
        what: `${counted(due, 'event')} ${verb(due, 'is', 'are')} due for sink ${sink}, the oldest for ${span(dueMs!)}, though ${attached(processes)}`,
        figures: { sink, due, dueMs: dueMs!, processes },
        fix: `read what hooks.error and the log say of sink ${sink}; await box.admin.messages({ box: 'outbox', consumer: ${quoted(sink)}, state: 'pending' })   // has the last error of each`,
      })),
})

const LEASES = check<Facts>({
  code: 'relay-leases-expired',
  severity: 'warning',
  why: 'The relay that held these parts of the outbox died, and no other has taken them over.',
  find: ({ sinks }, { limits }) =>
    sinks
      .filter(({ expired, expiredMs, dueMs }) => expired > 0 && dueMs !== null && expiredMs! > limits.waitingMs)
      .map(({ sink, expired, expiredMs }) => ({
        what: `${expired} of 32 leases on sink ${sink} ${verb(expired, 'is', 'are')} over, the first for ${span(expiredMs!)}`,
        figures: { sink, expired, expiredMs: expiredMs! },
        fix: `start a process with box.to(…, { name: ${quoted(sink)} }): it takes them over at once`,
      })),
})

const EVENTS_DEAD = check<Facts>({
  code: 'events-dead',
  severity: 'warning',
  why: 'These events could not be published and were given up: receivers never heard of them.',
  find: ({ sinks }, { limits }) =>
    sinks
      .filter(({ dead }) => dead > 0)
      .map(({ sink, dead, deadMs, diedMs }) => ({
        severity: deadMs! > limits.deadMs ? ('warning' as const) : ('note' as const),
        what: `${counted(dead, 'event')} for sink ${sink} ${verb(dead, 'is', 'are')} dead, the first for ${span(diedMs!)}, the oldest sent ${span(deadMs!)} ago`,
        figures: { sink, dead, deadForMs: diedMs!, oldestMs: deadMs! },
        fix: `await box.admin.retry({ box: 'outbox', consumer: ${quoted(sink)}, state: 'dead' })   // or discard, with a reason`,
      })),
})

const UNWANTED = check<Facts>({
  code: 'events-unwanted',
  severity: 'warning',
  why: 'No sink takes events of these types: they stay in the outbox until one does.',
  find({ unwanted: { sinks, count, oldestMs } }, { limits }) {
    if (count === 0 || oldestMs === null || oldestMs <= limits.lagMs) return []
    const waiting = `${counted(count, 'event')} ${verb(count, 'waits', 'wait')} for a sink`
    return [
      {
        // Where there never was a sink, send() may be the end of it: a journal, or a box whose sinks are still to come.
        ...(!sinks && { severity: 'note' as const }),
        what: `${waiting} ${sinks ? `that wants ${verb(count, 'it', 'them')}` : 'and no process has ever attached one'}, the oldest sent ${span(oldestMs)} ago`,
        figures: { events: count, oldestMs },
        fix: `attach a sink whose types include theirs; or await box.admin.discard({ box: 'outbox', consumer: '', state: 'pending' }, { reason: 'nobody wants them' })`,
      },
    ]
  },
})

export const OUTBOX = family('the outbox', readOutbox, [UNATTENDED, STUCK, LEASES, EVENTS_DEAD, UNWANTED])

async function readOutbox({ ask }: Look): Promise<Facts> {
  const sinks = await ask(LOOK_SINKS, { goneMs: GONE_MS })
  const [unwanted] = await ask(LOOK_UNWANTED, null)
  return { sinks: sinks.map(({ facts }) => readJson(facts)), unwanted: readJson(unwanted!.facts) }
}

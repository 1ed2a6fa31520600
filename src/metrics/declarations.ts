/**
 * Every metric that a box has, declared once: Prometheus, OpenTelemetry and docs/monitoring.md go by this list.
 *
 * Names are those of OpenTelemetry. In Prometheus a dot is an underscore, seconds end in `_seconds` and counters in `_total`.
 * `database`: it was read from the database, so that every process of the box says the same; the others are a process's own.
 */
export interface Declaration {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** Seconds or bytes; a number of things otherwise. */
  readonly unit?: 's' | 'By'
  readonly labels: readonly Label[]
  readonly help: string
  /** Upper bounds, ascending. */
  readonly buckets?: readonly number[]
  readonly database?: true
}

export type Label = 'consumer' | 'type' | 'outcome' | 'state' | 'reason' | 'sink' | 'source' | 'what'

const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400

/** As OpenTelemetry advises for durations of messaging. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** A copy comes after a lost acknowledgement, a restart, a weekend, or a replay. */
const AGES = [1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY]
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

export const METRICS = {
  'messaging.client.consumed.messages': {
    kind: 'counter',
    labels: ['source', 'type', 'outcome'],
    help: 'Messages that came in, by the source that brought them and what was answered; source (call) is receive and handle',
  },
  'messaging.process.duration': {
    kind: 'histogram',
    unit: 's',
    labels: ['consumer', 'type', 'outcome'],
    help: 'How long handlers ran, once for each message; outcome ok or error. Several runs of one message count each',
    buckets: DURATIONS,
  },
  'messaging.client.sent.messages': {
    kind: 'counter',
    labels: ['sink', 'outcome'],
    help: 'Events that were given to a sink: published, failed (will be tried again), postponed, dead',
  },
  'oncebox.consumer.outcomes': {
    kind: 'counter',
    labels: ['consumer', 'type', 'outcome'],
    help: 'What became of messages that ran: handled, failed (will be tried again), postponed, conflict, dead, quarantined; of box.once, before its transaction commits',
  },
  'oncebox.duplicates': {
    kind: 'counter',
    labels: ['consumer'],
    help: 'Copies of known messages, which were not run again',
  },
  'oncebox.duplicates.near_horizon': {
    kind: 'counter',
    labels: ['consumer'],
    help: 'Copies that came when four fifths of the time were over for which their message is remembered',
  },
  'oncebox.duplicate.age': {
    kind: 'histogram',
    unit: 's',
    labels: ['consumer'],
    help: 'How long after the message its copy came',
    buckets: AGES,
  },
  'oncebox.dead_letters': { kind: 'counter', labels: ['consumer'], help: 'Messages that became dead' },
  'oncebox.quarantined': {
    kind: 'counter',
    labels: ['consumer', 'reason'],
    help: 'Messages that were put in quarantine; consumer (none) if it was before anybody was asked',
  },
  'oncebox.group.size': {
    kind: 'histogram',
    labels: ['consumer'],
    help: 'Messages that were settled in one transaction',
    buckets: SIZES,
  },
  'oncebox.group.duration': {
    kind: 'histogram',
    unit: 's',
    labels: ['consumer'],
    help: 'How long the transaction of a group took, from BEGIN to the answer to its COMMIT',
    buckets: DURATIONS,
  },
  'oncebox.claims.lost': {
    kind: 'counter',
    labels: ['consumer'],
    help: 'Claims of which another worker took something, or whose lease ran out, before they were settled',
  },
  'oncebox.takeovers': {
    kind: 'counter',
    labels: ['consumer'],
    help: 'Messages that were taken over from a worker that died or lost its lease',
  },
  'oncebox.effects': {
    kind: 'counter',
    labels: ['consumer', 'outcome'],
    help: 'Calls of effects: succeeded, failed (certainly not done), unknown',
  },
  'oncebox.outbox.written': {
    kind: 'counter',
    labels: ['type'],
    help: 'Events that were written to the outbox; of box.send, before its transaction commits',
  },
  'oncebox.relay.duration': {
    kind: 'histogram',
    unit: 's',
    labels: ['sink'],
    help: 'How long a sink took to publish a batch',
    buckets: DURATIONS,
  },
  'oncebox.relay.dead_letters': { kind: 'counter', labels: ['sink'], help: 'Events that were given up' },
  'oncebox.retention.deleted': {
    kind: 'counter',
    labels: ['what'],
    help: 'What retention has deleted: messages, quarantined, events',
  },
  'oncebox.retention.passes': {
    kind: 'counter',
    labels: ['outcome'],
    help: 'Passes of retention in the background: ok, failed',
  },
  'oncebox.reading.failures': {
    kind: 'counter',
    labels: [],
    help: 'Times that the figures of the database could not be read; the last ones are shown',
  },
  'oncebox.pool.capacity': { kind: 'gauge', labels: [], help: 'Connections that the pool may open, where it tells' },
  'oncebox.pool.exhausted': {
    kind: 'gauge',
    labels: [],
    help: '1 if all connections of the pool are taken and somebody waits for one, where it tells',
  },

  'oncebox.consumer.lag': {
    kind: 'gauge',
    unit: 's',
    labels: ['consumer'],
    help: 'The age of the oldest message that is due',
    database: true,
  },
  'oncebox.consumer.paused': { kind: 'gauge', labels: ['consumer'], help: '1 if it is paused', database: true },
  'oncebox.messages': {
    kind: 'gauge',
    labels: ['consumer', 'state'],
    help: 'Messages that are not handled: pending, processing, dead, quarantined, discarded. Above 20 000 of one consumer estimated',
    database: true,
  },
  'oncebox.quarantine': {
    kind: 'gauge',
    labels: ['reason'],
    help: 'Messages in quarantine that nobody has discarded, by reason; at most 10 000 of each are counted',
    database: true,
  },
  'oncebox.retention.horizon': {
    kind: 'gauge',
    unit: 's',
    labels: ['consumer'],
    help: 'How long handled messages are remembered (retainMs)',
    database: true,
  },
  'oncebox.relay.lag': {
    kind: 'gauge',
    unit: 's',
    labels: ['sink'],
    help: 'How long the event has been due that has been due for longest',
    database: true,
  },
  'oncebox.outbox.events': {
    kind: 'gauge',
    labels: ['sink', 'state'],
    help: 'Events that are still to be published: pending, dead, discarded; sink (none) if no sink wants them. Above 20 000 of one sink estimated',
    database: true,
  },
  'oncebox.table.size': {
    kind: 'gauge',
    unit: 'By',
    labels: ['what'],
    help: 'The size of a table with its indexes',
    database: true,
  },
  'oncebox.reading.age': {
    kind: 'gauge',
    unit: 's',
    labels: [],
    help: 'How old the figures of the database are',
    database: true,
  },
  'oncebox.reading.duration': {
    kind: 'gauge',
    unit: 's',
    labels: [],
    help: 'How long it took to read them',
    database: true,
  },
} as const satisfies Readonly<Record<string, Declaration>>

export type MetricName = keyof typeof METRICS

type NameOf<K extends Declaration['kind']> = {
  [N in MetricName]: (typeof METRICS)[N]['kind'] extends K ? N : never
}[MetricName]
export type CounterName = NameOf<'counter'>
export type HistogramName = NameOf<'histogram'>

/** The values of a metric's labels, in the order in which they are declared. */
export type LabelsOf<N extends MetricName> = Texts<(typeof METRICS)[N]['labels']>
type Texts<T extends readonly unknown[]> = { readonly [K in keyof T]: string }

export function declarationOf(name: MetricName): Declaration {
  return METRICS[name]
}

export const METRIC_NAMES = Object.keys(METRICS) as readonly MetricName[]

/** In place of a name where there is none. */
export const NOBODY = '(none)'

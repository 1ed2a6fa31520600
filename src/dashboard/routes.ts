/**
 * The route table. Routing, checks, the client, docs/dashboard-api.md and the tests of who may what are made from it: a route
 * that is not here does not exist, and one without a permission does not compile.
 *
 * Paths are below the base path of the dashboard. What stands behind a colon is a part of the input.
 */
import type {
  Audit, Conflict, Conversation, Counted, Doctor, Done, Failures, History, Job, Jobs, Keys, MessageAnswer, Messages, Outbox,
  Overview, Quarantine, Session, Tally, Vocabulary,
} from './answers/index.js' // prettier-ignore
import { get, post, type Route } from './route.js'
import { flag, integer, rate, required, text, type InputOf } from './fields.js'

export const MOST_PER_PAGE = 200
export const MOST_PER_SECOND = 10_000
/** Above so many messages a change needs a rate. */
export const RATE_ABOVE = 1_000
const MOST_CURSOR = 100_000

const API = '/api/v1'
const BOX = `${API}/boxes/:box` as const

const box = required(text('the name of a box', { most: 200 }))
const name = (what: string): ReturnType<typeof text> => text(what, { most: 512 })
const q = text('a query, as the search bar takes it', { most: 4_000, empty: true })
const zone = integer('minutes that the reader’s clock is ahead of UTC, for times without a zone', {
  least: -840,
  most: 840,
})
const cursor = text('from the page before', { most: MOST_CURSOR })
const limit = integer('how many at most', { least: 1, most: MOST_PER_PAGE })
const reason = text('why, for the audit', { most: 2_000 })
const confirmation = required(text('from the count', { most: MOST_CURSOR }))
const minutes = required(integer('how far back', { least: 15, most: 10_080 }))
const job = required(text('the id of a job', { most: 100 }))
const perSecond = rate('how many in a second', MOST_PER_SECOND)
const at = {
  box,
  id: required(name('the producer’s id')),
  // Empty: it has none.
  source: text('the producer', { most: 512, empty: true }),
  consumer: text('the consumer', { most: 512, empty: true }),
}
/** What has no id is found by its number. */
const inQuarantine = {
  ...at,
  id: required(text('the producer’s id; empty if it has none', { most: 512, empty: true })),
  n: name('its number in quarantine; that body alone'),
}
const bulk = {
  box,
  confirmation,
  limit: integer('no more than so many, the oldest first', { least: 1, most: 1_000_000_000 }),
  perSecond,
}

export const ROUTES = {
  session: get<Session>()(`${API}/session`, { needs: 'session', input: {}, does: 'Who you are, what you may, and which boxes there are.' }),
  overview: get<Overview>()(`${BOX}/overview`, { needs: 'read', input: { box }, does: 'Consumers, sinks, health and what needs a person.' }),
  history: get<History>()(`${BOX}/history`, { needs: 'read', input: { box, minutes }, does: 'What came in, was handled, failed and waited, by consumer, in at most 300 steps.' }),
  vocabulary: get<Vocabulary>()(`${BOX}/vocabulary`, { needs: 'read', input: { box }, does: 'What a query can name, for suggestions.' }),
  messages: get<Messages>()(`${BOX}/messages`, { needs: 'read', input: { box, q, zone, cursor, limit }, search: true, does: 'Messages that fit a query, newest first.' }),
  tally: get<Tally>()(`${BOX}/tally`, { needs: 'read', input: { box, q, zone }, search: true, does: 'How many messages fit a query, by state, as far as that is cheap to count.' }),
  message: get<MessageAnswer>()(`${BOX}/message`, { needs: 'read', input: inQuarantine, does: 'Everything known of an id: one entry for each consumer, and for each body in quarantine; else for each sink.' }),
  body: get<string>()(`${BOX}/body`, { needs: 'bodies', input: inQuarantine, kind: 'text', does: 'The whole body, as it is stored.' }),
  conversation: get<Conversation>()(`${BOX}/conversation`, { needs: 'read', input: { box, id: at.id, source: at.source }, search: true, does: 'What caused a message, and what it caused, in all boxes.' }),
  failures: get<Failures>()(`${BOX}/failures`, { needs: 'read', input: { box, consumer: name('one consumer alone'), minutes: integer('groups of the last so many', { least: 1, most: 525_600 }), cursor }, search: true, does: 'Dead messages, grouped by what they died of.' }),
  quarantine: get<Quarantine>()(`${BOX}/quarantine`, { needs: 'read', input: { box }, does: 'What is in quarantine, by reason and consumer.' }),
  conflict: get<Conflict>()(`${BOX}/conflict`, { needs: 'read', input: { box, n: required(name('its number in quarantine')) }, does: 'A body in quarantine, and the one that came first under its id.' }),
  keys: get<Keys>()(`${BOX}/keys`, { needs: 'read', input: { box, consumer: name('one consumer alone'), cursor }, search: true, does: 'Keys that are blocked, by what, and what waits behind; the deepest others.' }),
  outbox: get<Outbox>()(`${BOX}/outbox`, { needs: 'read', input: { box }, does: 'Events by type, and sinks.' }),
  doctor: get<Doctor>()(`${BOX}/doctor`, { needs: 'read', input: { box, patience: integer('milliseconds; the answer is what is known', { least: 0, most: 5_000 }) }, search: true, does: 'What the doctor finds, some seconds old at most.' }),
  audit: get<Audit>()(`${BOX}/audit`, { needs: 'read', input: { box, cursor, limit }, does: 'What people did, newest first.' }),

  pause: post<Done>()(`${BOX}/pause`, { needs: 'pause', input: { box, consumer: required(name('the consumer')), reason }, does: 'Stops claiming a consumer’s messages, in all processes.' }),
  resume: post<Done>()(`${BOX}/resume`, { needs: 'pause', input: { box, consumer: required(name('the consumer')), reason }, does: 'Goes on with them.' }),
  answer: post<Done>()(`${BOX}/answer`, {
    needs: 'answer',
    input: {
      box,
      consumer: required(name('the consumer')),
      id: at.id,
      source: at.source,
      effect: required(name('the effect')),
      happened: required(flag('whether it happened')),
      result: text('what it gave, as JSON: numbers are kept as they are written', { most: 1_000_000 }),
      reason,
    },
    does: 'Tells what a person found out about an effect; its message goes on.',
  }),

  countRetry: post<Counted>()(`${BOX}/retry/count`, { needs: 'retry', input: { box, q, zone }, search: true, does: 'Counts what a retry would take, exactly.' }),
  retry: post<Job>()(`${BOX}/retry`, { needs: 'retry', input: { ...bulk, reason }, does: 'Makes what was counted pending again, oldest first.' }),
  paceRetry: post<Job>()(`${BOX}/retry/:job/rate`, { needs: 'retry', input: { box, job, perSecond: required(perSecond) }, does: 'Changes the rate of a retry that runs.' }),
  cancelRetry: post<Job>()(`${BOX}/retry/:job/cancel`, { needs: 'retry', input: { box, job }, does: 'Stops a retry. What was retried stays retried.' }),
  countDiscard: post<Counted>()(`${BOX}/discard/count`, { needs: 'discard', input: { box, q, zone }, search: true, does: 'Counts what a discard would take, exactly.' }),
  discard: post<Job>()(`${BOX}/discard`, { needs: 'discard', input: { ...bulk, reason: required(reason) }, does: 'Gives up what was counted, oldest first.' }),
  paceDiscard: post<Job>()(`${BOX}/discard/:job/rate`, { needs: 'discard', input: { box, job, perSecond: required(perSecond) }, does: 'Changes the rate of a discard that runs.' }),
  cancelDiscard: post<Job>()(`${BOX}/discard/:job/cancel`, { needs: 'discard', input: { box, job }, does: 'Stops a discard. What was discarded stays discarded.' }),
  jobs: get<Jobs>()(`${BOX}/jobs`, { needs: 'read', input: { box }, does: 'Retries and discards that run, or ended within the hour, in whichever process.' }),
  stream: get<never>()(`${BOX}/stream`, { needs: 'read', input: { box }, kind: 'events', does: 'Events `overview` and `jobs`, one of each a second at most.' }),

  asset: get<never>()('/assets/:file', { needs: 'session', input: { file: required(name('the name of a file')) }, kind: 'asset', does: 'A file of the interface.' }),
  icon: get<never>()('/favicon.svg', { needs: 'session', input: {}, kind: 'asset', does: 'The icon.' }),
  home: get<never>()('/', { needs: 'session', input: {}, kind: 'page', does: 'The interface.' }),
  page: get<never>()('/:page', { needs: 'session', input: { page: required(name('the name of a page')) }, kind: 'page', does: 'A page of the interface.' }),
  pageOf: get<never>()('/:page/:box', { needs: 'session', input: { page: required(name('the name of a page')), box }, kind: 'page', does: 'A page of the interface, of one box.' }),
} satisfies Record<string, Route> // prettier-ignore

export type { Permission, Route } from './route.js'
export type Routes = typeof ROUTES
export type RouteName = keyof Routes
export type RouteInput<K extends RouteName> = InputOf<Routes[K]['input']>
export type RouteAnswer<K extends RouteName> = Exclude<Routes[K]['answer'], undefined>

/** The names of what stands behind colons in a path. */
export function parametersOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => parameter!)
}

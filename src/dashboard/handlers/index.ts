/** What each route does. A route of the table that is missing here does not compile, and neither does one more. */
import { answer } from './answer.js'
import { audit } from './audit.js'
import { body } from './body.js'
import { cancel, confirm, count, jobs, pace } from './bulk.js'
import { conversation } from './conversation.js'
import { doctor } from './doctor.js'
import { failures } from './failures.js'
import { history } from './history.js'
import { file, page } from './interface.js'
import { keys } from './keys.js'
import { message } from './message.js'
import { messages } from './messages.js'
import { overview, outbox, vocabulary } from './overview.js'
import { pause, resume } from './pause.js'
import { conflict, quarantine } from './quarantine.js'
import { session } from './session.js'
import { stream } from './stream.js'
import { tally } from './tally.js'
import type { BoxCall, Call } from '../desk.js'
import type { RouteAnswer, RouteInput, RouteName, Routes } from '../routes.js'

/** About a box, if its path begins with one. */
type CallOf<K extends RouteName> = Routes[K]['path'] extends `/api/v1/boxes/${string}` ? BoxCall : Call

type Handlers = {
  readonly [K in RouteName]: (call: BoxCall & CallOf<K>, input: RouteInput<K>) => Answered<K> | Promise<Answered<K>>
}

/** What is no data is a Response. */
type Answered<K extends RouteName> = [RouteAnswer<K>] extends [never] ? Response : RouteAnswer<K> | Response

export const HANDLERS: Handlers = {
  session,
  overview,
  history,
  vocabulary,
  messages,
  tally,
  message,
  body,
  conversation,
  failures,
  quarantine,
  conflict,
  keys,
  outbox,
  doctor,
  audit,
  pause,
  resume,
  answer,
  countRetry: (call, input) => count(call, 'retry', input),
  retry: (call, input) => confirm(call, 'retry', input),
  paceRetry: (call, input) => pace(call, 'retry', input),
  cancelRetry: (call, input) => cancel(call, 'retry', input),
  countDiscard: (call, input) => count(call, 'discard', input),
  discard: (call, input) => confirm(call, 'discard', input),
  paceDiscard: (call, input) => pace(call, 'discard', input),
  cancelDiscard: (call, input) => cancel(call, 'discard', input),
  jobs,
  stream,
  asset: (call, { file: name }) => file(call, `assets/${name}`),
  icon: (call) => file(call, 'favicon.svg'),
  home: page,
  page,
  pageOf: page,
}

/**
 * Who takes part, and what it promises. `arrives`: handles messages as they come, with nothing stored before; `stores`: takes
 * part in the comparison of storing; `batch`: one statement for many messages; `share`: of the messages, for slow ones;
 * `except`: handlers that it cannot run; `asked`: only if it is named.
 */
export const CONTENDERS = {
  'by hand': {
    ...{ module: 'by-hand', shape: 'groups', stores: true, except: ['update'] },
    what: 'the limit: claims and groups of 100 in SQL on pg alone; a deadlock ends it',
  },
  oncebox: {
    ...{ module: 'oncebox', shape: 'groups', stores: true },
    what: 'default options: mark and effect in one transaction, groups as they fit',
  },
  'by hand, together': {
    ...{ module: 'by-hand', shape: 'together', except: ['update'] },
    what: 'the limit, statements of a group of 300 in one packet',
  },
  'oncebox, together': {
    ...{ module: 'oncebox', shape: 'together' },
    what: 'handlers of a group side by side, up to 300 of them',
  },
  'oncebox, inline': {
    ...{ module: 'oncebox', shape: 'inline', arrives: true },
    what: 'on arrival, nothing stored before: 100 at a time, 4 in flight',
  },
  'oncebox, single': {
    ...{ module: 'oncebox', shape: 'single', share: 0.4 },
    what: 'one transaction per message, 24 at once',
  },
  'naive inbox': {
    ...{ module: 'naive', shape: '', arrives: true, stores: true, share: 0.4 },
    what: 'on arrival: a row for the id and the handler in one transaction per message, 24 at once; no retries',
  },
  'graphile-worker': {
    ...{ module: 'graphile-worker', shape: '', stores: true },
    what: 'local queue of 500, batched completion, 24 at once; effect and mark apart: may run twice',
  },
  'pg-boss, batches of 100': {
    ...{ module: 'pg-boss', shape: 'groups', stores: true },
    what: 'transactional, 4 batches at once, 1 where rows are shared; one failure fails its batch',
  },
  'pg-boss, batches of 2': {
    ...{ module: 'pg-boss', shape: 'small', share: 0.2 },
    what: 'transactional, 24 batches at once, the smallest that do not wait between two',
  },
  'by hand, batches of 1 000': {
    ...{ module: 'by-hand', shape: 'many', batch: true },
    what: 'the limit, one statement of the handler per claim',
  },
  'oncebox, batch()': {
    ...{ module: 'oncebox', shape: 'many', batch: true },
    what: 'one transaction per batch of 1 000, bisected if it fails',
  },
  'pg-boss, batches of 1 000': {
    ...{ module: 'pg-boss', shape: 'many', batch: true },
    what: 'transactional; one failure fails its batch',
  },
  'pg-transactional-outbox': {
    ...{ module: 'pg-transactional-outbox', shape: '', share: 0.1, asked: true },
    what: 'polling, one transaction per message; reads its whole backlog for each poll',
  },
}

/** Bytes of a body, with the share of the messages: a few thousand large ones say enough. */
export const PAYLOADS = {
  '200 B': { bytes: 200 },
  '4 kB': { bytes: 4_000, share: 0.4 },
  '64 kB': { bytes: 64_000, share: 0.1 },
}

/**
 * A round is a handler and a payload, with a share of the messages; those of the first process are cold, see run.mjs. Code
 * goes on being compiled for some 30 000 messages, so that of the round that counts most has all of them.
 */
export const COLD = { name: 'cold', handler: 'insert', payload: '200 B', share: 1 / 8 }
export const WARM = { name: 'warm', handler: 'insert', payload: '200 B', share: 1 }

/** What the figures have to show: ratios of rates, by round and step. Of several `to` the fastest counts. */
const PEERS = ['graphile-worker', 'pg-boss, batches of 100']
export const CHECKS = [
  { round: 'warm', of: 'oncebox, together', to: ['graphile-worker'], target: 2.5 },
  { round: 'warm', of: 'oncebox, together', to: ['pg-boss, batches of 100'], target: 2 },
  { round: 'warm', of: 'oncebox, together', to: ['by hand, together'], target: 0.8 },
  { round: 'warm', of: 'oncebox', to: ['by hand'], target: 0.9 },
  { round: 'warm', of: 'oncebox', to: PEERS },
  { round: 'warm', of: 'oncebox, inline', to: ['naive inbox'] },
  { round: 'warm', of: 'oncebox, batch()', to: ['pg-boss, batches of 1 000'], target: 1.5 },
  { round: 'warm', of: 'oncebox, batch()', to: ['by hand, batches of 1 000'], target: 0.9 },
  { round: 'storing, one after the other', of: 'oncebox', to: PEERS, step: 'store', target: 1 },
  { round: 'storing, four in flight', of: 'oncebox', to: PEERS, step: 'store', target: 1 },
  { round: 'storing, message by message', of: 'oncebox', to: PEERS, step: 'store', target: 1 },
]

/** By default each handler with the small payload, and each payload with the handler that inserts. */
export function roundsOf({ handlers, payloads, all }) {
  const rounds = []
  for (const handler of handlers) {
    for (const payload of payloads) {
      const isWarm = handler === WARM.handler && payload === WARM.payload
      if (isWarm) rounds.unshift(WARM)
      else if (all || handler === WARM.handler || payload === WARM.payload)
        rounds.push({ name: `${handler}, ${payload}`, handler, payload, share: 1 / 8 })
    }
  }
  return rounds
}

export function takesPart({ batch, except = [] }, { handler, payload }) {
  if (except.includes(handler)) return false
  return !batch || (handler === WARM.handler && payload === WARM.payload)
}

/**
 * What is measured. A shape has contenders, measured in turn (limit, library, limit, library, …), and checks: ratios of
 * two contenders' medians, with a target where there is one.
 */
import { measureBacklog } from './backlog.mjs'
import { Library } from './library.mjs'
import { Limit } from './limit.mjs'
import { orders } from './messages.mjs'

const KEYS = 1_000
const MANY_KEYS = 100_000
const isOther = (key) => key !== 'hot'

/** Hand-written: `load` stores the messages first, and `run` is what is timed. */
function byHand(connections, run, { load = true } = {}) {
  return { make: (url) => new Limit(url), open: (it) => it.open(connections), load, run }
}

/** `sleeping`: so many keys have a lane already; `only`: which of the messages are its. */
function byLibrary(options, run, { load = true, stock, sleeping, only } = {}) {
  const make = (url, schema) => new Library(url, schema)
  return { make, open: (it) => it.open(options), load, run, stock, sleeping, only }
}

/** Drains what is stored, from `box.start()` to the last commit. */
async function drain(box, list, left) {
  return { ended: await box.drain(list.length, left) }
}

/** The rate of everything, and of what is not on the hot key. */
async function drainOthers(drainAll, list) {
  const total = list.filter(({ key }) => isOther(key)).length
  let seen = 0
  let othersEnded
  const ended = await drainAll((key) => {
    if (isOther(key) && ++seen === total) othersEnded = performance.now()
  })
  return { ended, others: { count: total, ended: othersEnded } }
}

export const SHAPES = [
  {
    name: 'single',
    title: 'one transaction per message, 24 connections',
    messages: { quick: 5_000, full: 20_000 },
    make: (n) => orders(n),
    contenders: {
      limit: byHand(24, (it, list) => it.drainGroups(24, list.length, { claim: 20, group: 1 })),
      library: byLibrary({ concurrency: 24, group: { messages: 1 } }, drain),
    },
    checks: [{ of: 'library', to: 'limit', target: 0.85 }],
  },
  {
    name: 'groups',
    title: 'stored, adaptive groups, 4 connections',
    messages: { quick: 15_000, full: 60_000 },
    make: (n) => orders(n),
    contenders: {
      limit: byHand(4, (it, list) => it.drainGroups(4, list.length, { claim: 100, group: 100 })),
      library: byLibrary({}, drain),
    },
    checks: [{ of: 'library', to: 'limit', target: 0.9 }],
  },
  {
    name: 'together',
    title: 'stored, group: { together: true }, 4 connections',
    messages: { quick: 20_000, full: 80_000 },
    make: (n) => orders(n),
    contenders: {
      limit: byHand(4, (it, list) => it.drainTogether(4, list.length, { claim: 300, group: 300 })),
      library: byLibrary({ group: { together: true } }, drain),
      'in turn': byLibrary({}, drain),
    },
    checks: [
      { of: 'library', to: 'limit', target: 0.8 },
      { of: 'library', to: 'in turn' },
    ],
  },
  {
    name: 'inline',
    title: 'inline, arrays of 100, 4 in flight, receive included',
    messages: { quick: 15_000, full: 60_000 },
    make: (n) => orders(n),
    contenders: {
      limit: byHand(4, (it, list) => it.handle(list, { inFlight: 4, size: 100 }), { load: false }),
      library: byLibrary({ mode: 'inline' }, (it, list) => it.handle(list, { inFlight: 4, size: 100 }), {
        load: false,
      }),
    },
    checks: [{ of: 'library', to: 'limit', target: 0.85 }],
  },
  {
    name: 'batch',
    title: 'batch() handler, 1 000 messages a call, 4 connections',
    messages: { quick: 40_000, full: 200_000 },
    make: (n) => orders(n),
    contenders: {
      limit: byHand(4, (it, list) => it.drainBatches(4, list.length, 1_000)),
      library: byLibrary({ handler: 'batch', group: { messages: 1_000 } }, drain),
    },
    checks: [{ of: 'library', to: 'limit', target: 0.9 }],
  },
  {
    name: 'receive',
    title: 'receive alone, batches of 1 000, 4 in flight',
    messages: { quick: 40_000, full: 200_000 },
    make: (n) => orders(n),
    contenders: {
      limit: byHand(4, (it, list) => it.receive(list), { load: false }),
      library: byLibrary({}, (it, list) => it.receive(list), { load: false }),
    },
    stays: true,
    checks: [{ of: 'library', to: 'limit', target: 0.8 }],
  },
  {
    name: 'keys',
    title: `order: 'key', ${KEYS} keys, 4 connections`,
    messages: { quick: 10_000, full: 60_000 },
    make: (n) => orders(n, { keyOf: (i) => `key-${i % KEYS}` }),
    contenders: {
      limit: byHand(4, (it, list) => it.drainLanes(4, list.length, { lanes: 100, group: 200 })),
      library: byLibrary({ order: 'key' }, drain),
      unkeyed: byLibrary({}, drain),
    },
    checks: [
      { of: 'library', to: 'limit', target: 0.8 },
      { of: 'library', to: 'unkeyed', target: 0.8 },
    ],
  },
  {
    name: 'many-keys',
    title: `order: 'key', ${MANY_KEYS} keys that were seen before, 4 connections`,
    messages: { quick: 10_000, full: 100_000 },
    // Neighbours in the list are far apart in the index.
    make: (n) => orders(n, { keyOf: (i) => `key-${(i * 7_919) % MANY_KEYS}` }),
    contenders: {
      library: byLibrary({ order: 'key' }, drain, { sleeping: MANY_KEYS }),
      unkeyed: byLibrary({}, drain),
    },
    checks: [{ of: 'library', to: 'unkeyed', target: 0.6 }],
  },
  {
    name: 'hot-key',
    title: `order: 'key', half of it on one key, half on ${KEYS} others`,
    messages: { quick: 10_000, full: 60_000 },
    make: (n) => orders(n, { keyOf: (i) => (i % 2 === 0 ? 'hot' : `key-${(i >> 1) % KEYS}`) }),
    contenders: {
      limit: byHand(4, (it, list) =>
        drainOthers((handled) => it.drainLanes(4, list.length, { lanes: 100, group: 200, handled }), list),
      ),
      library: byLibrary({ order: 'key' }, (it, list, left) =>
        drainOthers((handled) => it.drain(list.length, left, handled), list),
      ),
      'without it': byLibrary(
        { order: 'key' },
        (it, list, left) => drainOthers((handled) => it.drain(list.length, left, handled), list),
        { only: ({ key }) => isOther(key) },
      ),
    },
    checks: [
      { of: 'library', to: 'limit' },
      { of: 'library', to: 'limit', metric: 'others' },
      { of: 'library', to: 'without it', metric: 'others', target: 0.9 },
    ],
  },
  {
    name: 'contention',
    title: 'handler updates one of so many rows, default options',
    messages: { quick: 6_000, full: 40_000 },
    make: (n) => orders(n, { skuOf: (i) => Math.floor(Math.abs(Math.sin(i + 1)) * 1e9) }),
    contenders: Object.fromEntries(
      [20_000, 2_000, 200, 20].map((rows) => [
        `${rows} rows`,
        byLibrary({ handler: 'update' }, drain, { stock: rows }),
      ]),
    ),
    checks: [2_000, 200, 20].map((rows) => ({ of: `${rows} rows`, to: '20000 rows', target: 0.5 })),
  },
  {
    name: 'backlog',
    title: 'a million rows appear under a worker that started on an empty table',
    fullOnly: true,
    messages: { quick: 1_000_000, full: 1_000_000 },
    measure: measureBacklog,
  },
]
